// SPDX-License-Identifier: BSD-3-Clause
// Random mixtures of collectives, teams, placements, limits and arrivals; and that a seed is all that a run depends on.
#include <gtest/gtest.h>

#include "tests/simulated/replay.h"
#include "tests/simulated/scenario.h"

namespace ibcoll {
namespace {

TEST(Seeds, EveryRunCompletesWithTheRightData) {
  const Seeds seeds(200, 2000);
  uint64_t no_credit = 0, puts = 0, messages = 0;
  for (uint64_t seed = seeds.first; seed <= seeds.last; ++seed) {
    const ScenarioResult result = run_scenario({seed, nullptr, 0, 4, 3});
    ASSERT_EQ(result.failure, "") << replay_command(seed);
    no_credit += result.counters.no_credit;
    puts += result.counters.puts;
    messages += result.counters.messages;
  }
  if (seeds.last - seeds.first < 100) return;
  // With this many seeds, the rare paths were taken.
  EXPECT_GT(no_credit, 0u);
  EXPECT_GT(puts, 0u);
  EXPECT_GT(messages, 0u);
}

TEST(Seeds, ASeedRunsTheSameTwice) {
  const Seeds seeds(20, 200);
  for (uint64_t seed = seeds.first; seed <= seeds.last; ++seed) {
    const ScenarioResult first = run_scenario({seed, nullptr, 0, 4, 3});
    const ScenarioResult second = run_scenario({seed, nullptr, 0, 4, 3});
    ASSERT_EQ(first.trace, second.trace) << replay_command(seed);
    ASSERT_EQ(first.time, second.time) << replay_command(seed);
    ASSERT_EQ(first.passes, second.passes) << replay_command(seed);
  }
}

}  // namespace
}  // namespace ibcoll
