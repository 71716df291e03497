// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/comm/reduce_ops.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace ibcoll {
namespace {

const std::vector<ibcoll_op_t> kAll = {IBCOLL_SUM, IBCOLL_PROD, IBCOLL_MIN,  IBCOLL_MAX, IBCOLL_BAND,
                                       IBCOLL_BOR, IBCOLL_BXOR, IBCOLL_LAND, IBCOLL_LOR, IBCOLL_LXOR};

template <typename T>
T reduce(ibcoll_op_t op, ibcoll_type_t type, T in, T inout) {
  const ReduceKernel kernel = reduce_kernel(op, type);
  if (!kernel) return T{};
  kernel(&in, &inout, &inout, 1);
  return inout;
}

TEST(ReduceOps, EveryOperationIsThereForEveryTypeThatHasIt) {
  for (int i = 0; i < IBCOLL_TYPE_COUNT; ++i) {
    const auto type = static_cast<ibcoll_type_t>(i);
    for (const ibcoll_op_t op : kAll) {
      const bool bitwise = op == IBCOLL_BAND || op == IBCOLL_BOR || op == IBCOLL_BXOR;
      const bool floating = type == IBCOLL_FLOAT || type == IBCOLL_DOUBLE;
      EXPECT_EQ(reduce_kernel(op, type) != nullptr, !(bitwise && floating)) << op->name << " " << type_name(type);
    }
  }
}

TEST(ReduceOps, TypesHaveTheirSizes) {
  constexpr uint64_t kSizes[] = {1, 1, 2, 2, 4, 4, 8, 8, 4, 8};
  for (int i = 0; i < IBCOLL_TYPE_COUNT; ++i) EXPECT_EQ(type_bytes(static_cast<ibcoll_type_t>(i)), kSizes[i]);
  EXPECT_EQ(type_bytes(IBCOLL_TYPE_COUNT), 0u);
  EXPECT_EQ(type_bytes(static_cast<ibcoll_type_t>(-1)), 0u);
  EXPECT_STREQ(type_name(static_cast<ibcoll_type_t>(-1)), "?");
  EXPECT_EQ(reduce_kernel(IBCOLL_SUM, static_cast<ibcoll_type_t>(77)), nullptr);
}

TEST(ReduceOps, IntegersWrap) {
  EXPECT_EQ(reduce<int8_t>(IBCOLL_SUM, IBCOLL_INT8, 127, 1), -128);
  EXPECT_EQ(reduce<int16_t>(IBCOLL_PROD, IBCOLL_INT16, 300, 300), static_cast<int16_t>(90'000));
  EXPECT_EQ(reduce<uint16_t>(IBCOLL_PROD, IBCOLL_UINT16, 65'535, 65'535), 1);
  EXPECT_EQ(reduce<int32_t>(IBCOLL_SUM, IBCOLL_INT32, std::numeric_limits<int32_t>::max(), 1),
            std::numeric_limits<int32_t>::min());
  EXPECT_EQ(reduce<int64_t>(IBCOLL_SUM, IBCOLL_INT64, std::numeric_limits<int64_t>::min(), -1),
            std::numeric_limits<int64_t>::max());
}

TEST(ReduceOps, SignMatters) {
  EXPECT_EQ(reduce<int8_t>(IBCOLL_MIN, IBCOLL_INT8, -1, 1), -1);
  EXPECT_EQ(reduce<uint8_t>(IBCOLL_MIN, IBCOLL_UINT8, 255, 1), 1);
  EXPECT_EQ(reduce<int64_t>(IBCOLL_MAX, IBCOLL_INT64, -5, -7), -5);
  EXPECT_EQ(reduce<double>(IBCOLL_MIN, IBCOLL_DOUBLE, -0.5, 2.0), -0.5);
}

TEST(ReduceOps, LogicalOnesAreZeroOrOne) {
  EXPECT_EQ(reduce<int32_t>(IBCOLL_LAND, IBCOLL_INT32, 4, 2), 1);
  EXPECT_EQ(reduce<int32_t>(IBCOLL_LXOR, IBCOLL_INT32, 4, 2), 0);
  EXPECT_EQ(reduce<float>(IBCOLL_LOR, IBCOLL_FLOAT, 0.0f, 0.25f), 1.0f);
  EXPECT_EQ(reduce<double>(IBCOLL_LXOR, IBCOLL_DOUBLE, 0.0, -3.0), 1.0);
  EXPECT_EQ(reduce<uint64_t>(IBCOLL_BXOR, IBCOLL_UINT64, 0b1100, 0b1010), 0b0110u);
}

TEST(ReduceOps, WorksOnUnalignedCountsAndLeavesTheRest) {
  std::vector<int16_t> in(1001, 2), inout(1002, 3);
  reduce_kernel(IBCOLL_SUM, IBCOLL_INT16)(in.data(), inout.data(), inout.data(), 1001);
  EXPECT_EQ(std::vector<int16_t>(1001, 5), std::vector<int16_t>(inout.begin(), inout.end() - 1));
  EXPECT_EQ(inout.back(), 3);
}

TEST(ReduceOps, OperandsMayLieAnywhere) {
  constexpr uint64_t kCount = 100;
  for (int i = 0; i < IBCOLL_TYPE_COUNT; ++i) {
    const auto type = static_cast<ibcoll_type_t>(i);
    const uint64_t bytes = kCount * type_bytes(type);
    std::vector<std::byte> lower(bytes), upper(bytes), result(bytes);
    for (uint64_t at = 0; at < bytes; ++at) {
      lower[at] = static_cast<std::byte>(at * 5 % 61);  // as a floating-point number, too
      upper[at] = static_cast<std::byte>(at * 11 % 59);
    }
    for (const ibcoll_op_t op : kAll) {
      const ReduceKernel kernel = reduce_kernel(op, type);
      if (!kernel) continue;
      kernel(lower.data(), upper.data(), result.data(), kCount);
      for (uint64_t shift = 1; shift < 8; ++shift) {
        std::vector<std::byte> a(shift), b(shift + 1), c(bytes + shift);
        a.insert(a.end(), lower.begin(), lower.end());
        b.insert(b.end(), upper.begin(), upper.end());
        kernel(a.data() + shift, b.data() + shift + 1, c.data() + shift, kCount);
        c.erase(c.begin(), c.begin() + static_cast<long>(shift));
        EXPECT_EQ(c, result) << op->name << " of " << type_name(type) << ", shifted by " << shift;
      }
    }
  }
}

// The result in a place of its own, or in that of one operand.
TEST(ReduceOps, TheResultMayReplaceAnOperand) {
  for (const uint64_t count : {1, 7, 1000}) {
    std::vector<int32_t> lower(count), upper(count), differences(count);
    for (uint64_t i = 0; i < count; ++i) {
      lower[i] = static_cast<int32_t>(3 * i);
      upper[i] = static_cast<int32_t>(7 * i + 1);
      differences[i] = lower[i] ^ upper[i];
    }
    const ReduceKernel kernel = reduce_kernel(IBCOLL_BXOR, IBCOLL_INT32);
    std::vector<int32_t> result(count);
    kernel(lower.data(), upper.data(), result.data(), count);
    EXPECT_EQ(result, differences);
    result = upper;
    kernel(lower.data(), result.data(), result.data(), count);
    EXPECT_EQ(result, differences);
    result = lower;
    kernel(result.data(), upper.data(), result.data(), count);
    EXPECT_EQ(result, differences);
  }
}

TEST(ReduceOps, UserOperationsGetTheirTypeAndPointer) {
  struct Seen {
    uint64_t count = 0;
    ibcoll_type_t type = IBCOLL_INT8;
  } seen;
  ibcoll_op op{"mine", false, -1,
               [](const void* in, void* inout, uint64_t count, ibcoll_type_t type, void* user) {
                 *static_cast<Seen*>(user) = {count, type};
                 *static_cast<double*>(inout) -= *static_cast<const double*>(in);
               },
               &seen};
  double in = 1, inout = 5;
  const Reduction reduction{&op, IBCOLL_DOUBLE, reduce_kernel(&op, IBCOLL_DOUBLE)};
  EXPECT_EQ(reduction.kernel, nullptr);
  reduction(&in, &inout, 1);
  EXPECT_EQ(inout, 4);
  EXPECT_EQ(seen.count, 1u);
  EXPECT_EQ(seen.type, IBCOLL_DOUBLE);
  double result = 0;
  reduction.combine(&in, &inout, &result, 1);
  EXPECT_EQ(result, 3);
  EXPECT_EQ(inout, 4);
}

}  // namespace
}  // namespace ibcoll
