// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/machine/wait_strategy.h"

#include <gtest/gtest.h>

#include <string>

namespace ibcoll {
namespace {

TEST(WaitStrategy, SpinsOnlyWhereEveryRankHasACore) {
  EXPECT_GT(WaitStrategy("auto", 1.0).spins(), 100u);
  EXPECT_EQ(WaitStrategy("auto", 1.5).spins(), 1u);
  EXPECT_EQ(WaitStrategy("auto", 8.0).spins(), 1u);
}

TEST(WaitStrategy, DoesAsItIsTold) {
  EXPECT_GT(WaitStrategy("spin", 8.0).spins(), 100u);
  EXPECT_FALSE(WaitStrategy("spin", 8.0).sleeps());
  EXPECT_EQ(WaitStrategy("yield", 1.0).spins(), 1u);
  EXPECT_EQ(WaitStrategy("sleep", 1.0).spins(), 1u);
  EXPECT_STREQ(WaitStrategy("sleep", 1.0).name(), "sleep");
  EXPECT_NE(std::string(WaitStrategy("auto", 4.0).name()).find("yield"), std::string::npos);
}

TEST(WaitStrategy, OtherWaitsRestInOneWay) {
  constexpr WaitStrategy yielding = WaitStrategy::yielding(), sleeping = WaitStrategy::sleeping(7'000);
  EXPECT_FALSE(yielding.sleeps());
  EXPECT_EQ(sleeping.yields(), 0u);
  EXPECT_EQ(sleeping.shortest_sleep_ns(), 7'000u);
  EXPECT_EQ(sleeping.longest_sleep_ns(), 7'000u);
}

}  // namespace
}  // namespace ibcoll
