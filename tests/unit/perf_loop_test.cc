// SPDX-License-Identifier: BSD-3-Clause
// Tests what comes before the timed calls, in both loops.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "perf/arrival/loop.h"
#include "perf/timed_loop.h"

namespace ibcoll::perf {
namespace {

// Each mean that the ranks agree on is `mean_us`, so that few calls fill any budget.
struct CountingLibrary {
  double mean_us = 0;  // 0: as measured
  uint64_t calls = 0, before_the_barrier = 0, agreements = 0;
  bool call() { return ++calls > 0; }
  bool progress() { return true; }
  bool barrier() {
    before_the_barrier = calls;
    return true;
  }
  bool largest(double& value) {
    if (mean_us > 0) value = mean_us;
    return ++agreements > 0;
  }
};

TEST(TimedLoop, WarmupComesBeforeTheBarrier) {
  std::vector<double> calls;
  CountingLibrary library;
  ASSERT_TRUE(run_timed_loop(library, LoopPlan{3, 7, 100}, calls));
  EXPECT_EQ(library.before_the_barrier, 7U);
  EXPECT_EQ(calls.size(), 3U);
}

// Calls with delays need an agreement each, and two more follow on what they took.
TEST(ArrivalLoop, EachCallIsAgreedUpon) {
  std::vector<double> stamps;
  const ArrivalPattern pattern;
  const auto nothing = [](uint64_t) {};
  CountingLibrary library;
  ASSERT_TRUE(run_arrival_loop(library, {2, -1, 100}, {pattern, 1, 0, 1, false, 0}, nothing, nothing, stamps));
  EXPECT_EQ(library.calls, 3 + 2U);
  EXPECT_EQ(library.agreements, 3 + 2 + 2U);
  EXPECT_EQ(stamps.size(), 2 * 2U);
  CountingLibrary given;
  ASSERT_TRUE(run_arrival_loop(given, {2, 4, 100}, {pattern, 1, 0, 1, false, 0}, nothing, nothing, stamps));
  EXPECT_EQ(given.calls, 4 + 2U);
}

}  // namespace
}  // namespace ibcoll::perf
