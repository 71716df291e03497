// SPDX-License-Identifier: BSD-3-Clause
#include "tools/oracle/elements.h"

#include <algorithm>
#include <cstring>

#include "runtime/base/hash.h"

namespace ibcoll::oracle {
namespace {

struct Type {
  ibcoll_type_t type;
  uint64_t bytes;
  void (*store)(std::byte* to, uint64_t value);
};

template <typename T>
void store_as(std::byte* to, uint64_t value) {
  const T element = static_cast<T>(value);
  std::memcpy(to, &element, sizeof element);
}

template <typename T>
constexpr Type type(ibcoll_type_t name) {
  return {name, sizeof(T), store_as<T>};
}

constexpr Type kTypes[] = {type<int8_t>(IBCOLL_INT8),     type<uint8_t>(IBCOLL_UINT8),   type<int16_t>(IBCOLL_INT16),
                           type<uint16_t>(IBCOLL_UINT16), type<int32_t>(IBCOLL_INT32),   type<uint32_t>(IBCOLL_UINT32),
                           type<int64_t>(IBCOLL_INT64),   type<uint64_t>(IBCOLL_UINT64), type<float>(IBCOLL_FLOAT),
                           type<double>(IBCOLL_DOUBLE)};

const Type* find(ibcoll_type_t type) {
  const auto found = std::find_if(std::begin(kTypes), std::end(kTypes), [&](const Type& t) { return t.type == type; });
  return found == std::end(kTypes) ? nullptr : found;
}

uint64_t compose(uint64_t first, uint64_t second) {
  const auto a1 = static_cast<uint32_t>(first >> 32), b1 = static_cast<uint32_t>(first);
  const auto a2 = static_cast<uint32_t>(second >> 32), b2 = static_cast<uint32_t>(second);
  return static_cast<uint64_t>(a1 * a2) << 32 | static_cast<uint32_t>(a2 * b1 + b2);
}

// `in` is of the lower ranks, so it is applied first.
void compose_all(const void* in, void* inout, uint64_t count, ibcoll_type_t, void*) {
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t lower = 0, upper = 0;
    std::memcpy(&lower, static_cast<const std::byte*>(in) + 8 * i, 8);
    std::memcpy(&upper, static_cast<std::byte*>(inout) + 8 * i, 8);
    upper = compose(lower, upper);
    std::memcpy(static_cast<std::byte*>(inout) + 8 * i, &upper, 8);
  }
}

struct Operation {
  const char* name;
  const ibcoll_op_t* op;
  uint64_t (*apply)(uint64_t a, uint64_t b);
};

constexpr Operation kTable[kOperations] = {
    {"sum", &IBCOLL_SUM, [](uint64_t a, uint64_t b) { return a + b; }},
    {"prod", &IBCOLL_PROD, [](uint64_t a, uint64_t b) { return a * b; }},
    {"min", &IBCOLL_MIN, [](uint64_t a, uint64_t b) { return std::min(a, b); }},
    {"max", &IBCOLL_MAX, [](uint64_t a, uint64_t b) { return std::max(a, b); }},
    {"band", &IBCOLL_BAND, [](uint64_t a, uint64_t b) { return a & b; }},
    {"bor", &IBCOLL_BOR, [](uint64_t a, uint64_t b) { return a | b; }},
    {"bxor", &IBCOLL_BXOR, [](uint64_t a, uint64_t b) { return a ^ b; }},
    {"land", &IBCOLL_LAND, [](uint64_t a, uint64_t b) -> uint64_t { return a && b; }},
    {"lor", &IBCOLL_LOR, [](uint64_t a, uint64_t b) -> uint64_t { return a || b; }},
    {"lxor", &IBCOLL_LXOR, [](uint64_t a, uint64_t b) -> uint64_t { return !a != !b; }}};

const Operation* find(ibcoll_op_t op) {
  const auto found =
      std::find_if(std::begin(kTable), std::end(kTable), [&](const Operation& o) { return *o.op == op; });
  return found == std::end(kTable) ? nullptr : found;
}

}  // namespace

uint64_t element_bytes(ibcoll_type_t type) {
  const Type* const known = find(type);
  return known ? known->bytes : 0;
}

// Small numbers, so that floating point results are exact; products stay powers of two. Of logical operations 0 and 1: what one
// rank alone returns is then no question.
uint64_t operand(uint64_t key, uint64_t index, ibcoll_op_t op) {
  const uint64_t word = scramble(key + index * kGoldenRatio);
  if (op == composition()) return word;
  if (op == IBCOLL_PROD) return 1 + (word % 8 == 0);
  if (op == IBCOLL_LAND || op == IBCOLL_LOR || op == IBCOLL_LXOR) return word % 2;
  return word % 8;
}

uint64_t combine(uint64_t lower, uint64_t upper, ibcoll_op_t op) {
  const Operation* const known = find(op);
  return known ? known->apply(lower, upper) : compose(lower, upper);
}

void store(std::byte* to, ibcoll_type_t type, uint64_t value) { find(type)->store(to, value); }

ibcoll_op_t composition() {
  static const ibcoll_op_t op = [] {
    ibcoll_op_t made = nullptr;
    (void)ibcoll_op_create(compose_all, nullptr, 0, &made);
    return made;
  }();
  return op;
}

ibcoll_op_t operation(int index) { return *kTable[index].op; }

const char* operation_name(ibcoll_op_t op) {
  const Operation* const known = find(op);
  return known ? known->name : op ? "composition" : "-";
}

}  // namespace ibcoll::oracle
