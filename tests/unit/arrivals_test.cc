// SPDX-License-Identifier: BSD-3-Clause
#include "perf/apps/layer/arrivals.h"

#include <gtest/gtest.h>

namespace apps {
namespace {

TEST(Arrivals, FourRanksByHand) {
  const Imbalance one = imbalance({{0, 11}, {2, 12}, {4, 12}, {10, 13}});
  EXPECT_DOUBLE_EQ(one.average, 3);  // from the mean 4: 4, 2, 0, 6
  EXPECT_DOUBLE_EQ(one.worst, 10);
  EXPECT_DOUBLE_EQ(one.in_call, 8);  // 11, 10, 8, 3
  EXPECT_DOUBLE_EQ(one.after_last, 3);
}

TEST(Arrivals, OrderOfRanksDoesNotMatter) {
  const Imbalance one = imbalance({{10, 13}, {4, 12}, {0, 11}, {2, 12}});
  EXPECT_DOUBLE_EQ(one.average, 3);
  EXPECT_DOUBLE_EQ(one.worst, 10);
  EXPECT_DOUBLE_EQ(one.after_last, 3);
}

TEST(Arrivals, AllAtOnce) {
  const Imbalance one = imbalance({{5, 7}, {5, 9}});
  EXPECT_DOUBLE_EQ(one.average, 0);
  EXPECT_DOUBLE_EQ(one.worst, 0);
  EXPECT_DOUBLE_EQ(one.in_call, 3);
  EXPECT_DOUBLE_EQ(one.after_last, 4);
}

TEST(Arrivals, ARankThatLeavesBeforeTheLastOneComes) {
  const Imbalance one = imbalance({{0, 1}, {10, 11}});  // a reduce, at a rank that only sends
  EXPECT_DOUBLE_EQ(one.worst, 10);
  EXPECT_DOUBLE_EQ(one.after_last, 1);
}

}  // namespace
}  // namespace apps
