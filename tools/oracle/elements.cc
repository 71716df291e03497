// SPDX-License-Identifier: BSD-3-Clause
#include "tools/oracle/elements.h"

#include <algorithm>
#include <cstring>

#include "runtime/base/hash.h"

namespace ibcoll::oracle {
namespace {

struct Type {
  ibcoll_type_t type;
  const char* name;
  uint64_t bytes;
  void (*store)(std::byte* to, std::span<const uint64_t> values);
};

template <typename T>
void store_as(std::byte* to, std::span<const uint64_t> values) {
  for (size_t i = 0; i < values.size(); ++i) {
    const T element = static_cast<T>(values[i]);
    std::memcpy(to + i * sizeof element, &element, sizeof element);
  }
}

template <typename T>
constexpr Type type(ibcoll_type_t type, const char* name) {
  return {type, name, sizeof(T), store_as<T>};
}

constexpr Type kTypes[] = {type<int8_t>(IBCOLL_INT8, "int8"),    type<uint8_t>(IBCOLL_UINT8, "uint8"),
                           type<int16_t>(IBCOLL_INT16, "int16"), type<uint16_t>(IBCOLL_UINT16, "uint16"),
                           type<int32_t>(IBCOLL_INT32, "int32"), type<uint32_t>(IBCOLL_UINT32, "uint32"),
                           type<int64_t>(IBCOLL_INT64, "int64"), type<uint64_t>(IBCOLL_UINT64, "uint64"),
                           type<float>(IBCOLL_FLOAT, "float"),   type<double>(IBCOLL_DOUBLE, "double")};

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

using Values = std::span<uint64_t>;
using Others = std::span<const uint64_t>;

struct Operation {
  const char* name;
  const ibcoll_op_t* op;
  void (*apply)(Values values, Others upper);
};

template <typename Apply>
void each(Values values, Others upper, Apply apply) {
  for (size_t i = 0; i < values.size(); ++i) values[i] = apply(values[i], upper[i]);
}

using Word = uint64_t;
constexpr Operation kTable[kOperations] = {
    {"sum", &IBCOLL_SUM, [](Values v, Others u) { each(v, u, [](Word a, Word b) { return a + b; }); }},
    {"prod", &IBCOLL_PROD, [](Values v, Others u) { each(v, u, [](Word a, Word b) { return a * b; }); }},
    {"min", &IBCOLL_MIN, [](Values v, Others u) { each(v, u, [](Word a, Word b) { return std::min(a, b); }); }},
    {"max", &IBCOLL_MAX, [](Values v, Others u) { each(v, u, [](Word a, Word b) { return std::max(a, b); }); }},
    {"band", &IBCOLL_BAND, [](Values v, Others u) { each(v, u, [](Word a, Word b) { return a & b; }); }},
    {"bor", &IBCOLL_BOR, [](Values v, Others u) { each(v, u, [](Word a, Word b) { return a | b; }); }},
    {"bxor", &IBCOLL_BXOR, [](Values v, Others u) { each(v, u, [](Word a, Word b) { return a ^ b; }); }},
    {"land", &IBCOLL_LAND, [](Values v, Others u) { each(v, u, [](Word a, Word b) -> Word { return a && b; }); }},
    {"lor", &IBCOLL_LOR, [](Values v, Others u) { each(v, u, [](Word a, Word b) -> Word { return a || b; }); }},
    {"lxor", &IBCOLL_LXOR, [](Values v, Others u) { each(v, u, [](Word a, Word b) -> Word { return !a != !b; }); }}};

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

const char* type_name(ibcoll_type_t type) {
  const Type* const known = find(type);
  return known ? known->name : nullptr;
}

// Small numbers, so that floating point results are exact; products stay powers of two. Of logical operations 0 and 1: what one
// rank alone returns is then no question.
void operands(std::span<uint64_t> values, uint64_t key, uint64_t first, ibcoll_op_t op) {
  const bool logical = op == IBCOLL_LAND || op == IBCOLL_LOR || op == IBCOLL_LXOR;
  const uint64_t mask = op == composition() ? ~uint64_t{0} : logical ? 1 : 7;
  for (size_t i = 0; i < values.size(); ++i) values[i] = scramble(key + (first + i) * kGoldenRatio) & mask;
  if (op == IBCOLL_PROD)
    for (uint64_t& value : values) value = 1 + (value == 0);
}

void combine(std::span<uint64_t> values, std::span<const uint64_t> upper, ibcoll_op_t op) {
  const Operation* const known = find(op);
  return known ? known->apply(values, upper) : each(values, upper, compose);
}

void store(std::byte* to, ibcoll_type_t type, std::span<const uint64_t> values) { find(type)->store(to, values); }

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

bool bitwise(ibcoll_op_t op) { return op == IBCOLL_BAND || op == IBCOLL_BOR || op == IBCOLL_BXOR; }

}  // namespace ibcoll::oracle
