// SPDX-License-Identifier: BSD-3-Clause
// allreduce: every type with every operation, operations of the user, the same bits on every rank.
#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>

#include "tests/multiprocess/scenario.h"

namespace ibcoll::multiprocess {
namespace {

// ---------------------------------------------------------------- predefined operations

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
        for (int r = 1; r < self.size; ++r) wanted[i] = combine<T>(op.name, wanted[i], element<T>(r, i));
      }
      const ibcoll_status_t status = ibcoll_allreduce(self.world, mine.data(), result.data(), count, type, op.op);
      if (op.bitwise && !std::is_integral_v<T>) {
        expect_error(status, IBCOLL_ERR_INVALID_ARGUMENT, op.name, "a bitwise operation on floating point");
        continue;
      }
      expect_ok(status, op.name);
      expect(result[count] == T{42}, "{} of type {}: the element behind the result was written", op.name, int{type});
      result.pop_back();
      expect(result == wanted, "{} of {} elements of type {} is wrong", op.name, count, int{type});
    }
  }
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

// The larger of two is the one that stands in a certain place, where they are a number and NaN, or 0 and -0.
void same_extremes_everywhere(Rank& self) {
  const double odd[] = {1.0, std::numeric_limits<double>::quiet_NaN(), 0.0, -0.0, -1.0};
  for (const size_t count : {size_t{25}, size_t{4000}})
    for (const ibcoll_op_t op : {IBCOLL_MIN, IBCOLL_MAX}) {
      std::vector<double> mine(count), result(count), first(count);
      for (size_t i = 0; i < count; ++i)
        mine[i] = odd[(i / (self.rank % 2 == 0 ? 1 : 5) + static_cast<size_t>(self.rank / 2)) % 5];
      expect_ok(ibcoll_allreduce(self.world, mine.data(), result.data(), count, IBCOLL_DOUBLE, op), "allreduce");
      first = result;
      expect_ok(ibcoll_bcast(self.world, first.data(), count * sizeof(double), 0), "bcast");
      expect(std::memcmp(first.data(), result.data(), count * sizeof(double)) == 0,
             "an extreme of {} doubles differs from that of rank 0", count);
    }
}

// ---------------------------------------------------------------- operations of the user

// x -> a x + b modulo 2^32, as one 64-bit element. Composition is associative and not commutative.
void compose_affine(const void* in, void* inout, uint64_t count, ibcoll_type_t, void* calls) {
  expect(count > 0, "the operation is called for no elements");
  ++*static_cast<uint64_t*>(calls);
  const auto* first = static_cast<const uint64_t*>(in);
  auto* second = static_cast<uint64_t*>(inout);
  for (uint64_t i = 0; i < count; ++i) {
    const auto a1 = static_cast<uint32_t>(first[i] >> 32), b1 = static_cast<uint32_t>(first[i]);
    const auto a2 = static_cast<uint32_t>(second[i] >> 32), b2 = static_cast<uint32_t>(second[i]);
    second[i] = static_cast<uint64_t>(a1 * a2) << 32 | static_cast<uint32_t>(a2 * b1 + b2);
  }
}

// 2 x 2 matrices of bytes modulo 256, as one 32-bit element: in times inout.
void multiply_matrices(const void* in, void* inout, uint64_t count, ibcoll_type_t, void* calls) {
  expect(count > 0, "the operation is called for no elements");
  ++*static_cast<uint64_t*>(calls);
  const auto* a = static_cast<const uint8_t*>(in);
  auto* b = static_cast<uint8_t*>(inout);
  for (uint64_t i = 0; i < count; ++i, a += 4, b += 4) {
    const uint8_t product[] = {
        static_cast<uint8_t>(a[0] * b[0] + a[1] * b[2]), static_cast<uint8_t>(a[0] * b[1] + a[1] * b[3]),
        static_cast<uint8_t>(a[2] * b[0] + a[3] * b[2]), static_cast<uint8_t>(a[2] * b[1] + a[3] * b[3])};
    std::memcpy(b, product, 4);
  }
}

template <typename T>
std::vector<T> random_elements(size_t count, int rank) {
  std::vector<T> elements(count);
  uint64_t state = 0x1234567 + static_cast<uint64_t>(rank) * 0x9e3779b97f4a7c15;
  for (T& e : elements) {
    state = state * 6364136223846793005 + 1442695040888963407;
    e = static_cast<T>((state ^ state >> 29) * 0xbf58476d1ce4e5b9 >> (64 - 8 * sizeof(T)));
  }
  return elements;
}

template <typename T>
void check_user_operation(ibcoll_team_t team, ibcoll_reduce_fn function, ibcoll_type_t type, bool in_place) {
  uint64_t calls = 0, unused = 0;
  ibcoll_op_t op = nullptr;
  expect_ok(ibcoll_op_create(function, &calls, 0, &op), "ibcoll_op_create");
  const int p = ibcoll_team_size(team), rank = ibcoll_team_rank(team);
  for (const size_t count : {size_t{0}, size_t{1}, size_t{9}, size_t{3000}, size_t{20'000}, size_t{65'537}}) {
    std::vector<T> wanted = random_elements<T>(count, p - 1);
    for (int r = p - 2; r >= 0 && count > 0; --r)
      function(random_elements<T>(count, r).data(), wanted.data(), count, type, &unused);
    const std::vector<T> mine = random_elements<T>(count, rank);
    std::vector<T> result = in_place ? mine : std::vector<T>(count);
    expect_ok(ibcoll_allreduce(team, in_place ? IBCOLL_IN_PLACE : mine.data(), result.data(), count, type, op),
              "allreduce");
    expect(result == wanted, "p = {}, {} elements{}: not the product in rank order", p, count,
           in_place ? " in place" : "");
  }
  expect_ok(ibcoll_op_free(op), "ibcoll_op_free");
}

// For every p from 1 up to the size of the job: the first p ranks, also in descending order.
void non_commutative(Rank& self) {
  for (int p = 1; p <= self.size; ++p) {
    const TeamOwner team = split(self.world, self.rank < p ? 0 : -1, p % 2 == 0 ? self.rank : -self.rank);
    if (!team.get()) continue;
    for (const bool in_place : {false, true}) {
      check_user_operation<uint64_t>(team.get(), compose_affine, IBCOLL_UINT64, in_place);
      check_user_operation<uint32_t>(team.get(), multiply_matrices, IBCOLL_UINT32, in_place);
    }
  }
}

constexpr Scenario kReductionScenarios[] = {
    {"types_and_operations", types_and_operations},
    {"same_bits_everywhere", same_bits_everywhere},
    {"same_extremes_everywhere", same_extremes_everywhere},
    {"non_commutative", non_commutative},
};

}  // namespace

std::span<const Scenario> reduction_scenarios() { return kReductionScenarios; }

}  // namespace ibcoll::multiprocess
