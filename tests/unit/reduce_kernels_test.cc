// SPDX-License-Identifier: BSD-3-Clause
// Every type with every operation, of every set of kernels that this processor runs, against
// tests/unit/reduce_reference.h.
#include "runtime/comm/reduce/kernels.h"

#include <gtest/gtest.h>

#include <cfenv>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "tests/unit/reduce_reference.h"
#include "tests/unit/short_float_reference.h"

namespace ibcoll {
namespace {

// The kernel of a set, or the scalar one.
ReduceKernel kernel_of(const KernelSet& set, ibcoll_type_t type, OpIndex op) {
  const ReduceKernel vector = (*set.kernels)[type][op];
  return vector ? vector : kScalarKernels[type][op];
}

class Kernels : public ::testing::TestWithParam<const KernelSet*> {
 protected:
  void SetUp() override {
    if (!GetParam()->runs_here()) GTEST_SKIP() << "this processor has no " << GetParam()->instructions;
  }
  // For each type and each operation that it has.
  template <typename Check>
  void for_all(Check&& check) {
    for (const ReferenceType& type : reference_types()) {
      for (int op = 0; op < kOpCount; ++op) {
        const ReduceKernel kernel = kernel_of(*GetParam(), type.type, OpIndex{op});
        ASSERT_EQ(kernel != nullptr, type.has(OpIndex{op}))
            << operation_name(OpIndex{op}) << " " << type_name(type.type);
        if (kernel) check(type, OpIndex{op}, kernel);
      }
    }
  }
};

// Operands of `count` elements that bring each value together with each other one, and what is to come out.
struct Operands {
  Elements lower, upper, wanted;

  Operands(const ReferenceType& type, OpIndex op, uint64_t count) {
    const uint64_t values = type.values.size() / type.bytes;
    const auto add = [&](Elements& to, const std::byte* element) {
      to.insert(to.end(), element, element + type.bytes);
    };
    for (uint64_t i = 0; i < count; ++i) {
      const std::byte* const a = type.values.data() + i % values * type.bytes;
      const std::byte* const b = type.values.data() + (i / values + i) % values * type.bytes;
      add(lower, a), add(upper, b), add(wanted, type.apply(op, a, b).data());
    }
  }
};

// The first element that differs, or -1.
int64_t first_wrong(const ReferenceType& type, const std::byte* got, const Elements& wanted) {
  for (uint64_t at = 0; at < wanted.size(); at += type.bytes)
    if (!type.same(got + at, wanted.data() + at)) return static_cast<int64_t>(at / type.bytes);
  return -1;
}

std::string called(const ReferenceType& type, OpIndex op, uint64_t count) {
  return std::string(operation_name(op)) + " of " + std::to_string(count) + " " + type_name(type.type);
}

// In one run of all pairs of values: long enough for the loop of vectors, its rest and, of short floats, several
// blocks.
TEST_P(Kernels, EveryPairOfValues) {
  for_all([](const ReferenceType& type, OpIndex op, ReduceKernel kernel) {
    const uint64_t values = type.values.size() / type.bytes, count = values * values;
    const Operands operands(type, op, count);
    Elements result(operands.wanted.size());
    kernel(operands.lower.data(), operands.upper.data(), result.data(), count);
    EXPECT_EQ(first_wrong(type, result.data(), operands.wanted), -1) << called(type, op, count);
  });
}

// A program may stop at floating-point exceptions. IEEE 754-2019 raises none for what only chooses or compares values,
// quiet NaN, infinities and subnormal numbers included.
TEST_P(Kernels, WhatOnlyChoosesRaisesNoException) {
  for_all([](const ReferenceType& type, OpIndex op, ReduceKernel kernel) {
    if (op == kSum || op == kProd) return;
    for (const uint64_t count : {7, 1000}) {
      const Operands operands(type, op, count);
      Elements result(operands.wanted.size());
      std::feclearexcept(FE_ALL_EXCEPT);
      kernel(operands.lower.data(), operands.upper.data(), result.data(), count);
      EXPECT_EQ(std::fetestexcept(FE_ALL_EXCEPT), 0) << called(type, op, count);
    }
  });
}

// Around the lengths of vectors; at addresses of every kind; nothing after the result is written.
TEST_P(Kernels, EveryLengthAtAnyAddress) {
  constexpr std::byte kGuard{0xa5};
  for_all([&](const ReferenceType& type, OpIndex op, ReduceKernel kernel) {
    for (const uint64_t count : {0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 130}) {
      const Operands operands(type, op, count);
      const uint64_t shift = count % 11, bytes = operands.wanted.size();
      Elements a(shift + 1), b(shift), c(shift / 2 + bytes + 64, kGuard);
      a.insert(a.end(), operands.lower.begin(), operands.lower.end());
      b.insert(b.end(), operands.upper.begin(), operands.upper.end());
      kernel(a.data() + shift + 1, b.data() + shift, c.data() + shift / 2, count);
      EXPECT_EQ(first_wrong(type, c.data() + shift / 2, operands.wanted), -1) << called(type, op, count);
      c.erase(c.begin() + static_cast<long>(shift / 2), c.begin() + static_cast<long>(shift / 2 + bytes));
      EXPECT_EQ(c, Elements(c.size(), kGuard)) << called(type, op, count) << ": written beside the result";
    }
  });
}

TEST_P(Kernels, TheResultMayReplaceAnOperand) {
  for_all([](const ReferenceType& type, OpIndex op, ReduceKernel kernel) {
    for (const uint64_t count : {1, 6, 71, 1030}) {
      const Operands operands(type, op, count);
      Elements result = operands.lower;
      kernel(result.data(), operands.upper.data(), result.data(), count);
      EXPECT_EQ(first_wrong(type, result.data(), operands.wanted), -1)
          << called(type, op, count) << " in place of lower";
      result = operands.upper;
      kernel(operands.lower.data(), result.data(), result.data(), count);
      EXPECT_EQ(first_wrong(type, result.data(), operands.wanted), -1)
          << called(type, op, count) << " in place of upper";
    }
  });
}

// Their padding, too: equal results have equal bytes.
TEST_P(Kernels, LongDoublesArePaddedWithZeros) {
  if (sizeof(long double) != 16 || std::numeric_limits<long double>::digits != 64) GTEST_SKIP() << "no padding here";
  const long double one = 1;
  std::byte lower[16], upper[16], result[16];
  std::memset(lower, 0x77, sizeof lower), std::memset(upper, 0x66, sizeof upper),
      std::memset(result, 0x55, sizeof result);
  std::memcpy(lower, &one, 10), std::memcpy(upper, &one, 10);
  for (const OpIndex op : {kSum, kMin, kLand}) {
    kernel_of(*GetParam(), IBCOLL_LONG_DOUBLE, op)(lower, upper, result, 1);
    for (int i = 10; i < 16; ++i) EXPECT_EQ(result[i], std::byte{0}) << operation_name(op);
  }
}

// Each short float is itself after a way to float and back: the sum of it and -0.
TEST_P(Kernels, ShortFloatsSurvive) {
  for (const auto type : {IBCOLL_FLOAT16, IBCOLL_BFLOAT16}) {
    const ShortFloats& format = type == IBCOLL_FLOAT16 ? kHalves : kBrainFloats;
    std::vector<uint16_t> all(0x10000), zeros(all.size(), 0x8000), result(all.size());
    for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint16_t>(i);
    kernel_of(*GetParam(), type, kSum)(all.data(), zeros.data(), result.data(), all.size());
    for (size_t i = 0; i < all.size(); ++i) {
      if (std::isnan(format.value(all[i])))
        EXPECT_TRUE(std::isnan(format.value(result[i]))) << type_name(type) << " " << i;
      else
        EXPECT_EQ(result[i], all[i]) << type_name(type);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sets, Kernels, ::testing::ValuesIn([] {
                           std::vector<const KernelSet*> sets;
                           for (const KernelSet& set : kernel_sets()) sets.push_back(&set);
                           return sets;
                         }()),
                         [](const auto& info) { return info.param->instructions; });

TEST(ReduceKernels, TheChosenSetIsTheBestThatRunsHere) {
  const KernelSet* best = nullptr;
  for (const KernelSet& set : kernel_sets())
    if (set.runs_here()) best = &set;
  ASSERT_NE(best, nullptr);
  EXPECT_EQ(&chosen_kernels(), best);
  EXPECT_EQ(reduce_kernel(*IBCOLL_SUM, IBCOLL_FLOAT), (*best->kernels)[IBCOLL_FLOAT][kSum]);
}

}  // namespace
}  // namespace ibcoll
