// SPDX-License-Identifier: BSD-3-Clause
#include "tests/unit/reduce_reference.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <tuple>
#include <type_traits>

#include "tests/unit/short_float_reference.h"

namespace ibcoll {
namespace {

template <typename T>
T read(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}
template <typename T>
Elements written(const std::vector<T>& values) {
  const auto* const bytes = reinterpret_cast<const std::byte*>(values.data());
  return Elements(bytes, bytes + values.size() * sizeof(T));
}

bool is_logical(OpIndex op) { return op == kLand || op == kLor || op == kLxor; }
bool is_arithmetic(OpIndex op) { return op == kSum || op == kProd; }
bool is_extreme(OpIndex op) { return op == kMin || op == kMax; }

bool truth(OpIndex op, bool a, bool b) { return op == kLand ? a && b : op == kLor ? a || b : a != b; }

// ---------------------------------------------------------------- integers and bool

template <typename T>
T integer(OpIndex op, T lower, T upper) {
  const __int128 a = lower, b = upper;
  if (op == kReplace) return upper;
  if (is_logical(op)) return truth(op, a != 0, b != 0);
  if (op == kMin) return static_cast<T>(std::min(a, b));
  if (op == kMax) return static_cast<T>(std::max(a, b));
  const auto x = static_cast<unsigned __int128>(a), y = static_cast<unsigned __int128>(b);
  return static_cast<T>(op == kSum    ? x + y
                        : op == kProd ? x * y
                        : op == kBand ? (x & y)
                        : op == kBor  ? (x | y)
                                      : (x ^ y));
}

template <typename T>
std::vector<T> integers() {
  using Limits = std::numeric_limits<T>;
  // Around the sign bit.
  const uint64_t middle = uint64_t{1} << (8 * sizeof(T) - 1);
  return {0,
          1,
          2,
          7,
          Limits::max(),
          Limits::min(),
          static_cast<T>(Limits::max() - 1),
          static_cast<T>(Limits::min() + 1),
          static_cast<T>(middle / 2),
          static_cast<T>(middle),
          static_cast<T>(middle - 1),
          static_cast<T>(middle + 1),
          static_cast<T>(-1),
          static_cast<T>(-3),
          static_cast<T>(0x5a5a5a5a5a5a5a5a)};
}

template <typename T>
ReferenceType integer_type(ibcoll_type_t type) {
  return {type,
          sizeof(T),
          written(integers<T>()),
          [](OpIndex op) { return op != kMinloc && op != kMaxloc; },
          [](OpIndex op, const std::byte* a, const std::byte* b) {
            return written(std::vector<T>{integer(op, read<T>(a), read<T>(b))});
          },
          [](const std::byte* got, const std::byte* wanted) { return std::memcmp(got, wanted, sizeof(T)) == 0; }};
}

ReferenceType bool_type() {
  return {IBCOLL_BOOL,
          1,
          written<uint8_t>({0, 1, 2, 128, 255}),
          [](OpIndex op) { return is_logical(op) || op == kReplace; },
          [](OpIndex op, const std::byte* a, const std::byte* b) {
            const bool x = read<uint8_t>(a) != 0, y = read<uint8_t>(b) != 0;
            return written<uint8_t>({op == kReplace ? read<uint8_t>(b) : static_cast<uint8_t>(truth(op, x, y))});
          },
          [](const std::byte* got, const std::byte* wanted) { return *got == *wanted; }};
}

// ---------------------------------------------------------------- floating point

template <typename T>
bool same_number(T got, T wanted) {
  if (std::isnan(wanted)) return std::isnan(got);
  return got == wanted && std::signbit(got) == std::signbit(wanted);
}

// IEEE 754-2019, minimum and maximum. Sorted by (no NaN, value, no sign), the first is the minimum.
template <typename T>
auto rank_of(T value) {
  return std::tuple(!std::isnan(value), std::isnan(value) ? T{0} : value, !std::isnan(value) && !std::signbit(value));
}

template <typename T>
T real(OpIndex op, T a, T b) {
  if (op == kReplace) return b;
  if (is_logical(op)) return truth(op, a != 0, b != 0);
  if (op == kMin) return std::min(a, b, [](T x, T y) { return rank_of(x) < rank_of(y); });
  if (op == kMax) return -real(kMin, -a, -b);
  // Through double, a float's sum and product are exact before they are rounded once.
  if constexpr (std::is_same_v<T, float>)
    return static_cast<float>(op == kSum ? double{a} + double{b} : double{a} * double{b});
  else
    return op == kSum ? a + b : a * b;
}

template <typename T>
std::vector<T> reals() {
  using Limits = std::numeric_limits<T>;
  return {T{0},
          -T{0},
          T{1},
          T{-1},
          T{0.5},
          T{-1.5},
          T{3} / T{7},
          Limits::max(),
          Limits::lowest(),
          Limits::min(),
          -Limits::denorm_min(),
          Limits::infinity(),
          -Limits::infinity(),
          Limits::quiet_NaN(),
          -Limits::quiet_NaN()};
}

bool has_real(OpIndex op) { return is_arithmetic(op) || is_extreme(op) || is_logical(op) || op == kReplace; }

template <typename T>
ReferenceType real_type(ibcoll_type_t type) {
  return {type,
          sizeof(T),
          written(reals<T>()),
          has_real,
          [](OpIndex op, const std::byte* a, const std::byte* b) {
            return written(std::vector<T>{real(op, read<T>(a), read<T>(b))});
          },
          [](const std::byte* got, const std::byte* wanted) { return same_number(read<T>(got), read<T>(wanted)); }};
}

// Summed in float, then rounded to the nearest.
template <const ShortFloats& kFormat>
ReferenceType short_float_type(ibcoll_type_t type) {
  return {type,
          2,
          written(kFormat.samples()),
          has_real,
          [](OpIndex op, const std::byte* a, const std::byte* b) {
            if (op == kReplace) return Elements(b, b + 2);
            const auto x = static_cast<float>(kFormat.value(read<uint16_t>(a)));
            const auto y = static_cast<float>(kFormat.value(read<uint16_t>(b)));
            return written<uint16_t>({kFormat.nearest(real(op, x, y))});
          },
          [](const std::byte* got, const std::byte* wanted) {
            return same_number(kFormat.value(read<uint16_t>(got)), kFormat.value(read<uint16_t>(wanted)));
          }};
}

template <typename Real>
ReferenceType complex_type(ibcoll_type_t type) {
  std::vector<Complex<Real>> values;
  for (const Real re : {Real{0}, Real{1}, Real{-2.5}, Real{3} / Real{7}})
    for (const Real im : {-Real{0}, Real{-1}, Real{1e10}, Real{1} / Real{3}}) values.push_back({re, im});
  return {type,
          sizeof(Complex<Real>),
          written(values),
          [](OpIndex op) { return is_arithmetic(op) || op == kReplace; },
          [](OpIndex op, const std::byte* a, const std::byte* b) {
            const auto [ar, ai] = read<Complex<Real>>(a);
            const auto [br, bi] = read<Complex<Real>>(b);
            // volatile: each product is rounded before it is added, whatever the compiler may fuse.
            const volatile Real rr = ar * br, ii = ai * bi, ri = ar * bi, ir = ai * br;
            return written<Complex<Real>>({op == kReplace ? Complex<Real>{br, bi}
                                           : op == kSum   ? Complex<Real>{ar + br, ai + bi}
                                                          : Complex<Real>{rr - ii, ri + ir}});
          },
          [](const std::byte* got, const std::byte* wanted) {
            const auto a = read<Complex<Real>>(got), b = read<Complex<Real>>(wanted);
            return same_number(a.re, b.re) && same_number(a.im, b.im);
          }};
}

// ---------------------------------------------------------------- pairs

template <typename Value>
auto rank_of(OpIndex op, const Pair<Value>& pair) {
  if constexpr (std::is_floating_point_v<Value>)
    return std::tuple_cat(rank_of(op == kMinloc ? pair.value : -pair.value), std::tuple(pair.index));
  else
    return std::tuple(op == kMinloc ? __int128{pair.value} : -__int128{pair.value}, pair.index);
}

template <typename Value>
ReferenceType pair_type(ibcoll_type_t type) {
  std::vector<Value> keys;
  if constexpr (std::is_floating_point_v<Value>)
    keys = reals<Value>();
  else
    keys = integers<Value>();
  std::vector<Pair<Value>> values;
  for (const Value key : keys)
    for (const int index : {3, 1, -2}) values.push_back({key, index});
  return {type,
          sizeof(Pair<Value>),
          written(values),
          [](OpIndex op) { return op == kMinloc || op == kMaxloc || op == kReplace; },
          [](OpIndex op, const std::byte* a, const std::byte* b) {
            const auto x = read<Pair<Value>>(a), y = read<Pair<Value>>(b);
            const bool lower = op != kReplace && rank_of(op, x) <= rank_of(op, y);
            return written<Pair<Value>>({lower ? x : y});
          },
          [](const std::byte* got, const std::byte* wanted) {
            const auto a = read<Pair<Value>>(got), b = read<Pair<Value>>(wanted);
            if (a.index != b.index) return false;
            if constexpr (std::is_floating_point_v<Value>)
              return same_number(a.value, b.value);
            else
              return a.value == b.value;
          }};
}

}  // namespace

const std::vector<ReferenceType>& reference_types() {
  static const std::vector<ReferenceType> types{
      integer_type<int8_t>(IBCOLL_INT8),
      integer_type<uint8_t>(IBCOLL_UINT8),
      integer_type<int16_t>(IBCOLL_INT16),
      integer_type<uint16_t>(IBCOLL_UINT16),
      integer_type<int32_t>(IBCOLL_INT32),
      integer_type<uint32_t>(IBCOLL_UINT32),
      integer_type<int64_t>(IBCOLL_INT64),
      integer_type<uint64_t>(IBCOLL_UINT64),
      real_type<float>(IBCOLL_FLOAT),
      real_type<double>(IBCOLL_DOUBLE),
      real_type<long double>(IBCOLL_LONG_DOUBLE),
      short_float_type<kHalves>(IBCOLL_FLOAT16),
      short_float_type<kBrainFloats>(IBCOLL_BFLOAT16),
      complex_type<float>(IBCOLL_COMPLEX_FLOAT),
      complex_type<double>(IBCOLL_COMPLEX_DOUBLE),
      complex_type<long double>(IBCOLL_COMPLEX_LONG_DOUBLE),
      bool_type(),
      pair_type<float>(IBCOLL_FLOAT_INT),
      pair_type<double>(IBCOLL_DOUBLE_INT),
      pair_type<long double>(IBCOLL_LONG_DOUBLE_INT),
      pair_type<short>(IBCOLL_SHORT_INT),
      pair_type<int>(IBCOLL_INT_INT),
      pair_type<long>(IBCOLL_LONG_INT),
  };
  return types;
}

}  // namespace ibcoll
