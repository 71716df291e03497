// SPDX-License-Identifier: BSD-3-Clause
#include "tools/oracle/elements.h"

#include <algorithm>
#include <cstring>

#include "runtime/base/hash.h"

namespace ibcoll::oracle {
namespace {

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

// The same of elements that are sealed. An element of which a part is of another one becomes one without a seal.
void compose_sealed(const void* in, void* inout, uint64_t count, ibcoll_type_t, void*) {
  for (uint64_t i = 0; i < count; ++i) {
    const std::byte* const first = static_cast<const std::byte*>(in) + kSealedBytes * i;
    std::byte* const second = static_cast<std::byte*>(inout) + kSealedBytes * i;
    std::byte whole_first[kSealedBytes], whole_second[kSealedBytes];
    uint64_t lower = 0, upper = 0;
    std::memcpy(&lower, first, 8);
    std::memcpy(&upper, second, 8);
    store(whole_first, IBCOLL_OPAQUE, kSealedBytes, lower);
    store(whole_second, IBCOLL_OPAQUE, kSealedBytes, upper);
    const bool whole =
        std::memcmp(first, whole_first, kSealedBytes) == 0 && std::memcmp(second, whole_second, kSealedBytes) == 0;
    if (whole)
      store(second, IBCOLL_OPAQUE, kSealedBytes, compose(lower, upper));
    else
      std::memset(second, 0, kSealedBytes);
  }
}

// Never freed.
ibcoll_op_t made(ibcoll_reduce_fn function) {
  ibcoll_op_t op = nullptr;
  (void)ibcoll_op_create(function, nullptr, 0, &op);
  return op;
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
    {"lxor", &IBCOLL_LXOR, [](uint64_t a, uint64_t b) -> uint64_t { return !a != !b; }},
    {"minloc", &IBCOLL_MINLOC, [](uint64_t a, uint64_t b) { return std::min(a, b); }},
    {"maxloc", &IBCOLL_MAXLOC,
     [](uint64_t a, uint64_t b) { return a >> 32 == b >> 32 ? std::min(a, b) : std::max(a, b); }},
    {"replace", &IBCOLL_REPLACE, [](uint64_t, uint64_t b) { return b; }}};

const Operation* find(ibcoll_op_t op) {
  const auto found =
      std::find_if(std::begin(kTable), std::end(kTable), [&](const Operation& o) { return *o.op == op; });
  return found == std::end(kTable) ? nullptr : found;
}

}  // namespace

// Small numbers, so that floating point results are exact (a sum of bfloat16 over 100 ranks has 8 bits); products stay
// powers of two.
uint64_t operand(uint64_t key, uint64_t index, ibcoll_type_t type, ibcoll_op_t op) {
  const uint64_t word = scramble(key + index * kGoldenRatio);
  if (type == IBCOLL_OPAQUE || op == composition()) return word;
  if (op == IBCOLL_PROD) return 1 + (word % 8 == 0);
  const uint64_t value = type == IBCOLL_BFLOAT16 ? word % 2 : word % 8, other = word >> 32 & 7;
  if (has(type, IBCOLL_MINLOC)) return value << 32 | other;
  const bool is_complex = type >= IBCOLL_COMPLEX_FLOAT && type <= IBCOLL_COMPLEX_LONG_DOUBLE;
  return is_complex ? other << 32 | value : value;
}

uint64_t alone(uint64_t operand, ibcoll_op_t op) {
  return op == IBCOLL_LAND || op == IBCOLL_LOR || op == IBCOLL_LXOR ? operand != 0 : operand;
}

uint64_t combine(uint64_t lower, uint64_t upper, ibcoll_op_t op) {
  const Operation* const known = find(op);
  return known ? known->apply(lower, upper) : compose(lower, upper);
}

ibcoll_op_t composition() {
  static const ibcoll_op_t op = made(compose_all);
  return op;
}
ibcoll_op_t sealed_composition() {
  static const ibcoll_op_t op = made(compose_sealed);
  return op;
}

ibcoll_op_t operation(int index) { return *kTable[index].op; }

const char* operation_name(ibcoll_op_t op) {
  const Operation* const known = find(op);
  return known ? known->name : op == sealed_composition() ? "sealed composition" : op ? "composition" : "-";
}

bool bitwise(ibcoll_op_t op) { return op == IBCOLL_BAND || op == IBCOLL_BOR || op == IBCOLL_BXOR; }

}  // namespace ibcoll::oracle
