// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <numeric>

#include "perf/call_times.h"

namespace ibcoll::perf {
namespace {

TEST(CallTimes, AreMeansOfRanksAndAPercentileOfAllCalls) {
  std::vector<double> calls = {1, 3, 10, 20, 5, 5};  // three ranks, two calls each
  const CallTimes times = summarize(calls, 3);
  EXPECT_DOUBLE_EQ(times.t_min, 2);
  EXPECT_DOUBLE_EQ(times.t_max, 15);
  EXPECT_DOUBLE_EQ(times.t_avg, 22.0 / 3);
  EXPECT_DOUBLE_EQ(times.p99, 20);
}

TEST(CallTimes, PercentileLeavesOneInAHundredAbove) {
  std::vector<double> calls(1000);
  std::iota(calls.rbegin(), calls.rend(), 1.0);  // 1000, 999, ..., 1
  const CallTimes times = summarize(calls, 1);
  EXPECT_DOUBLE_EQ(times.p50, 500);
  EXPECT_DOUBLE_EQ(times.p90, 900);
  EXPECT_DOUBLE_EQ(times.p99, 990);
}

TEST(CallTimes, OfNoCallsAreZero) {
  std::vector<double> none;
  EXPECT_EQ(summarize(none, 4).t_max, 0);
  EXPECT_EQ(summarize(none, 0).p99, 0);
}

TEST(IterationsFor, FillTheBudgetWithinLimits) {
  EXPECT_EQ(iterations_for(10, 1000), 100u);
  EXPECT_EQ(iterations_for(1e9, 1000), 5u);
  EXPECT_EQ(iterations_for(0, 1e9), 20000u);
}

}  // namespace
}  // namespace ibcoll::perf
