// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/comm/reduce_ops.h"

#include <algorithm>
#include <array>
#include <type_traits>

namespace ibcoll {
namespace {

constexpr ibcoll_op kSum{"sum", true, 0, nullptr, nullptr}, kProd{"prod", true, 1, nullptr, nullptr},
    kMin{"min", true, 2, nullptr, nullptr}, kMax{"max", true, 3, nullptr, nullptr},
    kBand{"band", true, 4, nullptr, nullptr}, kBor{"bor", true, 5, nullptr, nullptr},
    kBxor{"bxor", true, 6, nullptr, nullptr}, kLand{"land", true, 7, nullptr, nullptr},
    kLor{"lor", true, 8, nullptr, nullptr}, kLxor{"lxor", true, 9, nullptr, nullptr};
constexpr int kOps = 10;

// Signed overflow wraps: the arithmetic is done in the unsigned type, no narrower than unsigned int.
template <typename T, bool = std::is_integral_v<T>>
struct Arithmetic {
  using type = T;
};
template <typename T>
struct Arithmetic<T, true> {
  using type = std::common_type_t<std::make_unsigned_t<T>, unsigned>;
};
template <typename T>
using Wide = typename Arithmetic<T>::type;

template <int kOp, typename T>
T apply(T a, T b) {
  if constexpr (kOp == 0) return static_cast<T>(static_cast<Wide<T>>(a) + static_cast<Wide<T>>(b));
  if constexpr (kOp == 1) return static_cast<T>(static_cast<Wide<T>>(a) * static_cast<Wide<T>>(b));
  if constexpr (kOp == 2) return std::min(a, b);
  if constexpr (kOp == 3) return std::max(a, b);
  if constexpr (kOp == 7) return static_cast<T>(a != T{} && b != T{});
  if constexpr (kOp == 8) return static_cast<T>(a != T{} || b != T{});
  if constexpr (kOp == 9) return static_cast<T>((a != T{}) != (b != T{}));
  if constexpr (std::is_integral_v<T>) {
    if constexpr (kOp == 4) return static_cast<T>(a & b);
    if constexpr (kOp == 5) return static_cast<T>(a | b);
    if constexpr (kOp == 6) return static_cast<T>(a ^ b);
  }
}

// At any address: what packed structures and Fortran's COMMON blocks hold is not aligned.
template <typename T>
struct [[gnu::packed]] Element {
  T value;
};

template <int kOp, typename T>
void kernel(const void* lower, const void* upper, void* result, uint64_t count) {
  const auto* const a = static_cast<const Element<T>*>(lower);
  const auto* const b = static_cast<const Element<T>*>(upper);
  auto* const to = static_cast<Element<T>*>(result);
  // Elements do not depend on each other, wherever the result is. Without this word g++ makes no vectors of them.
#pragma GCC ivdep
  for (uint64_t i = 0; i < count; ++i) to[i].value = apply<kOp, T>(a[i].value, b[i].value);
}

template <int kOp, typename T>
constexpr ReduceKernel entry() {
  constexpr bool bitwise = kOp >= 4 && kOp <= 6;
  if constexpr (bitwise && !std::is_integral_v<T>)
    return nullptr;
  else
    return &kernel<kOp, T>;
}

template <typename T, int... kOp>
constexpr std::array<ReduceKernel, kOps> column(std::integer_sequence<int, kOp...>) {
  return {entry<kOp, T>()...};
}

template <typename T>
constexpr std::array<ReduceKernel, kOps> column() {
  return column<T>(std::make_integer_sequence<int, kOps>());
}

struct Type {
  const char* name;
  uint64_t bytes;
  std::array<ReduceKernel, kOps> kernels;
};

template <typename T>
constexpr Type type(const char* name) {
  return {name, sizeof(T), column<T>()};
}

// In the order of ibcoll_type_t.
constexpr std::array<Type, IBCOLL_TYPE_COUNT> kTypes{
    type<int8_t>("int8"),   type<uint8_t>("uint8"),   type<int16_t>("int16"), type<uint16_t>("uint16"),
    type<int32_t>("int32"), type<uint32_t>("uint32"), type<int64_t>("int64"), type<uint64_t>("uint64"),
    type<float>("float"),   type<double>("double")};

bool valid(ibcoll_type_t type) { return type >= 0 && type < IBCOLL_TYPE_COUNT; }

}  // namespace

uint64_t type_bytes(ibcoll_type_t type) noexcept { return valid(type) ? kTypes[type].bytes : 0; }
const char* type_name(ibcoll_type_t type) noexcept { return valid(type) ? kTypes[type].name : "?"; }

ReduceKernel reduce_kernel(ibcoll_op_t op, ibcoll_type_t type) noexcept {
  return valid(type) && op->index >= 0 ? kTypes[type].kernels[op->index] : nullptr;
}

}  // namespace ibcoll

extern "C" {
// The handles are pointers to constants; nobody writes through them.
#define IBCOLL_DEFINE_OP(NAME, object) const ibcoll_op_t NAME = const_cast<ibcoll_op_t>(&ibcoll::object);
IBCOLL_DEFINE_OP(IBCOLL_SUM, kSum)
IBCOLL_DEFINE_OP(IBCOLL_PROD, kProd)
IBCOLL_DEFINE_OP(IBCOLL_MIN, kMin)
IBCOLL_DEFINE_OP(IBCOLL_MAX, kMax)
IBCOLL_DEFINE_OP(IBCOLL_BAND, kBand)
IBCOLL_DEFINE_OP(IBCOLL_BOR, kBor)
IBCOLL_DEFINE_OP(IBCOLL_BXOR, kBxor)
IBCOLL_DEFINE_OP(IBCOLL_LAND, kLand)
IBCOLL_DEFINE_OP(IBCOLL_LOR, kLor)
IBCOLL_DEFINE_OP(IBCOLL_LXOR, kLxor)
#undef IBCOLL_DEFINE_OP
}
