// SPDX-License-Identifier: BSD-3-Clause
// allreduce: every type with every predefined operation, the same bits on every rank.
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <functional>
#include <limits>
#include <utility>

#include "tests/multiprocess/scenario.h"

namespace ibcoll::multiprocess {
namespace {

struct NamedOp {
  ibcoll_op_t op;
  const char* name;
  bool bitwise;
};

std::vector<NamedOp> operations() {
  return {{IBCOLL_SUM, "sum", false},  {IBCOLL_PROD, "prod", false}, {IBCOLL_MIN, "min", false},
          {IBCOLL_MAX, "max", false},  {IBCOLL_BAND, "band", true},  {IBCOLL_BOR, "bor", true},
          {IBCOLL_BXOR, "bxor", true}, {IBCOLL_LAND, "land", false}, {IBCOLL_LOR, "lor", false},
          {IBCOLL_LXOR, "lxor", false}};
}

// Small whole numbers, so that floating point is exact as well; some are 0 for the logical operations.
template <typename T>
T element(int rank, size_t i) {
  const size_t value = (static_cast<size_t>(rank) * 7 + i * 3) % 5;
  if constexpr (std::is_integral_v<T>)
    return i % 4 == 3 ? static_cast<T>(std::numeric_limits<T>::max() - static_cast<T>(value)) : static_cast<T>(value);
  else
    return static_cast<T>(value) - static_cast<T>(i % 2);
}

// Written apart from the library's table. Wraps as the interface promises.
template <typename T>
T combine(const std::string_view op, T a, T b) {
  if (op == "min") return b < a ? b : a;
  if (op == "max") return a < b ? b : a;
  if (op == "land") return a != 0 && b != 0;
  if (op == "lor") return a != 0 || b != 0;
  if (op == "lxor") return (a != 0) != (b != 0);
  if constexpr (std::is_integral_v<T>) {
    const auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
    const uint64_t result = op == "sum"    ? x + y
                            : op == "prod" ? x * y
                            : op == "band" ? (x & y)
                            : op == "bor"  ? (x | y)
                                           : (x ^ y);
    return static_cast<T>(result);
  } else {
    return op == "sum" ? a + b : a * b;
  }
}

template <typename T>
void check_type(const Rank& self, ibcoll_type_t type) {
  for (const NamedOp& op : operations()) {
    for (const size_t count : {size_t{1}, size_t{77}, size_t{12'000}}) {
      std::vector<T> mine(count), result(count + 1, T{42}), wanted(count);
      for (size_t i = 0; i < count; ++i) {
        mine[i] = element<T>(self.rank, i);
        wanted[i] = element<T>(0, i);
        if (op.name[0] == 'l') wanted[i] = wanted[i] != T{};  // on one rank, too
        for (int r = 1; r < self.size; ++r) wanted[i] = combine<T>(op.name, wanted[i], element<T>(r, i));
      }
      const ibcoll_status_t status = ibcoll_allreduce(self.world, mine.data(), result.data(), count, type, op.op);
      if (op.bitwise && !std::is_integral_v<T>) {
        expect_error(status, IBCOLL_ERR_INVALID_ARGUMENT, op.name, "a bitwise operation on floating point");
        continue;
      }
      expect_ok(status, op.name);
      expect(result[count] == T{42}, "{} of type {}: the element after the result was written", op.name, int{type});
      result.pop_back();
      expect(result == wanted, "{} of {} elements of type {} is wrong", op.name, count, int{type});
    }
  }
}

// As bytes: elements whose results are known without arithmetic.
template <typename T>
void check_elements(const Rank& self, ibcoll_type_t type, ibcoll_op_t op, const char* name,
                    const std::function<T(int rank, size_t i)>& operand, const std::function<T(size_t i)>& result_of) {
  for (const size_t count : {size_t{1}, size_t{77}, size_t{12'000}}) {
    std::vector<T> mine(count), result(count), wanted(count);
    for (auto* all : {&mine, &result, &wanted}) std::memset(static_cast<void*>(all->data()), 0, count * sizeof(T));
    for (size_t i = 0; i < count; ++i) mine[i] = operand(self.rank, i), wanted[i] = result_of(i);
    expect_ok(ibcoll_allreduce(self.world, mine.data(), result.data(), count, type, op), name);
    expect(std::memcmp(result.data(), wanted.data(), count * sizeof(T)) == 0, "{} of {} elements of type {} is wrong",
           name, count, int{type});
  }
}

void further_types(const Rank& self) {
  const auto p = static_cast<float>(self.size);
  using Pair = std::pair<float, int>;  // laid out as C's structure
  static_assert(sizeof(Pair) == 8);
  check_elements<long double>(
      self, IBCOLL_LONG_DOUBLE, IBCOLL_SUM, "sum", [](int, size_t i) { return 0.5L * (i % 3); },
      [&](size_t i) { return 0.5L * (i % 3) * self.size; });
  check_elements<uint16_t>(
      self, IBCOLL_FLOAT16, IBCOLL_MAX, "max", [](int rank, size_t) { return rank == 0 ? 0x4000 : 0xc200; },
      [](size_t) { return 0x4000; });
  check_elements<std::complex<float>>(
      self, IBCOLL_COMPLEX_FLOAT, IBCOLL_SUM, "sum",
      [](int, size_t i) { return std::complex<float>(1, static_cast<float>(i % 4)); },
      [=](size_t i) { return std::complex<float>(p, p * static_cast<float>(i % 4)); });
  check_elements<Pair>(
      self, IBCOLL_FLOAT_INT, IBCOLL_MAXLOC, "maxloc", [](int rank, size_t i) { return Pair(i % 5, rank); },
      [](size_t i) { return Pair(i % 5, 0); });
  check_elements<unsigned char>(
      self, IBCOLL_BOOL, IBCOLL_LXOR, "lxor", [](int, size_t i) { return i % 2 == 1; },
      [&](size_t i) { return i % 2 == 1 && self.size % 2 == 1; });
  check_elements<int64_t>(
      self, IBCOLL_INT64, IBCOLL_REPLACE, "replace", [](int rank, size_t i) { return 10 * rank + i; },
      [&](size_t i) { return 10 * (self.size - 1) + i; });
}

void types_and_operations(Rank& self) {
  check_type<int8_t>(self, IBCOLL_INT8);
  check_type<uint8_t>(self, IBCOLL_UINT8);
  check_type<int16_t>(self, IBCOLL_INT16);
  check_type<uint16_t>(self, IBCOLL_UINT16);
  check_type<int32_t>(self, IBCOLL_INT32);
  check_type<uint32_t>(self, IBCOLL_UINT32);
  check_type<int64_t>(self, IBCOLL_INT64);
  check_type<uint64_t>(self, IBCOLL_UINT64);
  check_type<float>(self, IBCOLL_FLOAT);
  check_type<double>(self, IBCOLL_DOUBLE);
  further_types(self);
}

// Floating-point sums depend on the order; all ranks must see the same one.
void same_bits_everywhere(Rank& self) {
  for (const size_t count : {size_t{3}, size_t{1000}, size_t{30'000}}) {
    std::vector<double> mine(count), result(count), first(count);
    for (size_t i = 0; i < count; ++i) mine[i] = 1.0 / (1.0 + static_cast<double>(i) + 0.37 * self.rank);
    expect_ok(ibcoll_allreduce(self.world, mine.data(), result.data(), count, IBCOLL_DOUBLE, IBCOLL_SUM), "allreduce");
    first = result;
    expect_ok(ibcoll_bcast(self.world, first.data(), count * sizeof(double), 0), "bcast");
    expect(std::memcmp(first.data(), result.data(), count * sizeof(double)) == 0,
           "the sum of {} doubles differs from that of rank 0", count);
  }
}

// The same call gives the same bits, whoever is late, in place and not.
void same_bits_in_every_call(Rank& self) {
  const auto p = static_cast<size_t>(self.size);
  const auto sum = [&](ibcoll_collective_t collective, const void* send, void* recv, size_t count) {
    if (collective == IBCOLL_ALLREDUCE)
      return ibcoll_allreduce(self.world, send, recv, count, IBCOLL_DOUBLE, IBCOLL_SUM);
    if (collective == IBCOLL_REDUCE) return ibcoll_reduce(self.world, send, recv, count, IBCOLL_DOUBLE, IBCOLL_SUM, 0);
    return ibcoll_reduce_scatter_block(self.world, send, recv, count, IBCOLL_DOUBLE, IBCOLL_SUM);
  };
  for (const ibcoll_collective_t collective : {IBCOLL_ALLREDUCE, IBCOLL_REDUCE, IBCOLL_REDUCE_SCATTER_BLOCK})
    for (const size_t count : {size_t{40}, size_t{150'001}}) {
      const bool scatters = collective == IBCOLL_REDUCE_SCATTER_BLOCK;
      std::vector<double> mine(scatters ? p * count : count), first;
      for (size_t i = 0; i < mine.size(); ++i) mine[i] = 1.0 / (1.0 + static_cast<double>(i) + 0.37 * self.rank);
      for (int call = 0; call < 6; ++call) {
        const bool in_place = call % 2 == 1 && (collective != IBCOLL_REDUCE || self.rank == 0);
        std::vector<double> result = mine;
        const void* const send = in_place ? IBCOLL_IN_PLACE : static_cast<const void*>(mine.data());
        expect_ok(ibcoll_barrier(self.world), "barrier");
        if (call % self.size == self.rank) sleep_seconds(0.003);  // others come first; no result depends on it
        expect_ok(sum(collective, send, result.data(), count), ibcoll_collective_name(collective));
        if (collective == IBCOLL_REDUCE && self.rank != 0) continue;
        result.resize(count);
        if (call == 0) first = result;
        expect(std::memcmp(first.data(), result.data(), count * sizeof(double)) == 0,
               "{} of {} doubles: call {} gives other bits than the first one", ibcoll_collective_name(collective),
               count, call);
      }
    }
}

// NaN wins, and -0 is less than 0, whatever the algorithm and wherever they stand.
void same_extremes_everywhere(Rank& self) {
  const double odd[] = {1.0, std::numeric_limits<double>::quiet_NaN(), 0.0, -0.0, -1.0};
  const auto operand = [&](int rank, size_t i) {
    return odd[(i / (rank % 2 == 0 ? 1 : 5) + static_cast<size_t>(rank / 2)) % 5];
  };
  const auto wins = [](ibcoll_op_t op, double a, double b) {  // a over b
    if (std::isnan(a) || std::isnan(b)) return std::isnan(a);
    return op == IBCOLL_MIN ? a < b || (a == b && std::signbit(a)) : a > b || (a == b && !std::signbit(a));
  };
  for (const size_t count : {size_t{25}, size_t{4000}})
    for (const ibcoll_op_t op : {IBCOLL_MIN, IBCOLL_MAX}) {
      std::vector<double> mine(count), result(count), first(count);
      for (size_t i = 0; i < count; ++i) mine[i] = operand(self.rank, i);
      expect_ok(ibcoll_allreduce(self.world, mine.data(), result.data(), count, IBCOLL_DOUBLE, op), "allreduce");
      first = result;
      expect_ok(ibcoll_bcast(self.world, first.data(), count * sizeof(double), 0), "bcast");
      expect(std::memcmp(first.data(), result.data(), count * sizeof(double)) == 0,
             "an extreme of {} doubles differs from that of rank 0", count);
      for (size_t i = 0; i < count; ++i) {
        double wanted = operand(0, i);
        for (int rank = 1; rank < self.size; ++rank)
          if (wins(op, operand(rank, i), wanted)) wanted = operand(rank, i);
        expect(std::isnan(wanted) ? std::isnan(result[i])
                                  : result[i] == wanted && std::signbit(result[i]) == std::signbit(wanted),
               "extreme {} of {} doubles is {} instead of {}", i, count, result[i], wanted);
      }
    }
}

constexpr Scenario kReductionScenarios[] = {
    {"types_and_operations", types_and_operations},
    {"same_bits_everywhere", same_bits_everywhere},
    {"same_bits_in_every_call", same_bits_in_every_call},
    {"same_extremes_everywhere", same_extremes_everywhere},
};

}  // namespace

std::span<const Scenario> reduction_scenarios() { return kReductionScenarios; }

}  // namespace ibcoll::multiprocess
