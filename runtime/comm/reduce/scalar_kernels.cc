// SPDX-License-Identifier: BSD-3-Clause
// Long double, products of complex numbers, pairs of a value and an index, and REPLACE.
#include <cfloat>
#include <cstddef>
#include <cstring>

#include "runtime/comm/reduce/extremes.h"
#include "runtime/comm/reduce/kernels.h"

namespace ibcoll {
namespace {

// ---------------------------------------------------------------- long double

// 10 of the 16 bytes on x86 are the number; the others are written, too, so that equal results have equal bytes.
constexpr size_t kNumberBytes = LDBL_MANT_DIG == 64 ? 10 : sizeof(long double);

long double load(const std::byte* from) {
  long double value;
  std::memcpy(&value, from, sizeof value);
  return value;
}
void store(long double value, std::byte* to) {
  std::byte bytes[sizeof value] = {};
  std::memcpy(bytes, &value, kNumberBytes);
  std::memcpy(to, bytes, sizeof value);
}

template <OpIndex kOp>
long double apply(long double a, long double b) {
  if constexpr (kOp == kSum) return a + b;
  if constexpr (kOp == kProd) return a * b;
  if constexpr (kOp == kMin) return order(a, b) <= 0 ? a : b;
  if constexpr (kOp == kMax) return reverse_order(a, b) <= 0 ? a : b;
  if constexpr (kOp == kLand) return a != 0 && b != 0;
  if constexpr (kOp == kLor) return a != 0 || b != 0;
  if constexpr (kOp == kLxor) return (a != 0) != (b != 0);
}

template <OpIndex kOp>
void long_double(const void* lower, const void* upper, void* result, uint64_t count) {
  const auto *a = static_cast<const std::byte*>(lower), *b = static_cast<const std::byte*>(upper);
  auto* to = static_cast<std::byte*>(result);
  for (const auto* const end = a + count * sizeof(long double); a != end;
       a += sizeof(long double), b += sizeof(long double), to += sizeof(long double))
    store(apply<kOp>(load(a), load(b)), to);
}

// ---------------------------------------------------------------- complex

void complex_sum(const void* lower, const void* upper, void* result, uint64_t count) {
  long_double<kSum>(lower, upper, result, 2 * count);
}

void complex_long_product(const void* lower, const void* upper, void* result, uint64_t count) {
  constexpr size_t kReal = sizeof(long double);
  const auto *a = static_cast<const std::byte*>(lower), *b = static_cast<const std::byte*>(upper);
  auto* to = static_cast<std::byte*>(result);
  for (const auto* const end = a + count * 2 * kReal; a != end; a += 2 * kReal, b += 2 * kReal, to += 2 * kReal) {
    const Complex<long double> x{load(a), load(a + kReal)}, y{load(b), load(b + kReal)};
    store(x.re * y.re - x.im * y.im, to);
    store(x.re * y.im + x.im * y.re, to + kReal);
  }
}

// Not in the sets of vector kernels: for AVX-512, g++ 12 fuses the products with the sums, whatever -ffp-contract says.
template <typename Real>
void complex_product(const void* lower, const void* upper, void* result, uint64_t count) {
  const auto* const a = static_cast<const Unaligned<Complex<Real>>*>(lower);
  const auto* const b = static_cast<const Unaligned<Complex<Real>>*>(upper);
  auto* const to = static_cast<Unaligned<Complex<Real>>*>(result);
  for (uint64_t i = 0; i < count; ++i) {
    const Complex<Real> x = a[i].value, y = b[i].value;
    to[i].value = {x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re};
  }
}

// ---------------------------------------------------------------- any type

template <size_t kBytes>
void replace(const void*, const void* upper, void* result, uint64_t count) {
  if (result != upper && count > 0) std::memcpy(result, upper, count * kBytes);
}

constexpr KernelColumn long_double_column() {
  KernelColumn c{};
  c[kSum] = long_double<kSum>, c[kProd] = long_double<kProd>, c[kMin] = long_double<kMin>, c[kMax] = long_double<kMax>;
  c[kLand] = long_double<kLand>, c[kLor] = long_double<kLor>, c[kLxor] = long_double<kLxor>;
  return c;
}

template <typename Value>
constexpr void add_pair(KernelColumn& c) {
  c[kMinloc] = locate<Value, false>, c[kMaxloc] = locate<Value, true>;
  c[kReplace] = replace<sizeof(Pair<Value>)>;
}

constexpr KernelTable make_table() {
  KernelTable t{};
  t[IBCOLL_LONG_DOUBLE] = long_double_column();
  t[IBCOLL_COMPLEX_LONG_DOUBLE][kSum] = complex_sum, t[IBCOLL_COMPLEX_LONG_DOUBLE][kProd] = complex_long_product;
  t[IBCOLL_COMPLEX_FLOAT][kProd] = complex_product<float>, t[IBCOLL_COMPLEX_DOUBLE][kProd] = complex_product<double>;
  add_pair<float>(t[IBCOLL_FLOAT_INT]), add_pair<double>(t[IBCOLL_DOUBLE_INT]);
  add_pair<long double>(t[IBCOLL_LONG_DOUBLE_INT]), add_pair<short>(t[IBCOLL_SHORT_INT]);
  add_pair<int>(t[IBCOLL_INT_INT]), add_pair<long>(t[IBCOLL_LONG_INT]);
  for (const auto type : {IBCOLL_INT8, IBCOLL_UINT8, IBCOLL_BOOL, IBCOLL_OPAQUE}) t[type][kReplace] = replace<1>;
  for (const auto type : {IBCOLL_INT16, IBCOLL_UINT16, IBCOLL_FLOAT16, IBCOLL_BFLOAT16}) t[type][kReplace] = replace<2>;
  for (const auto type : {IBCOLL_INT32, IBCOLL_UINT32, IBCOLL_FLOAT}) t[type][kReplace] = replace<4>;
  for (const auto type : {IBCOLL_INT64, IBCOLL_UINT64, IBCOLL_DOUBLE, IBCOLL_COMPLEX_FLOAT})
    t[type][kReplace] = replace<8>;
  t[IBCOLL_COMPLEX_DOUBLE][kReplace] = replace<sizeof(Complex<double>)>;
  t[IBCOLL_LONG_DOUBLE][kReplace] = replace<sizeof(long double)>;
  t[IBCOLL_COMPLEX_LONG_DOUBLE][kReplace] = replace<sizeof(Complex<long double>)>;
  return t;
}

}  // namespace

constexpr KernelTable kScalarKernels = make_table();

}  // namespace ibcoll
