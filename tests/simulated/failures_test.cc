// SPDX-License-Identifier: BSD-3-Clause
// A rank dies at a random moment: every other rank ends with PEER_FAILED or has completed before, in bounded (virtual)
// time, and no rank writes to another's buffers afterwards.
#include <gtest/gtest.h>

#include "tests/simulated/replay.h"
#include "tests/simulated/scenario.h"

namespace ibcoll {
namespace {

void kill_a_rank(uint64_t usual, sim::Detection detection, bool report_to_all) {
  const Seeds seeds(usual);
  uint64_t failed = 0;
  for (uint64_t seed = seeds.first; seed <= seeds.last; ++seed) {
    sim::Random random = sim::Random(seed).split(99);
    ScenarioParams params;
    params.seed = seed;
    params.p = 2 + static_cast<int>(random.below(11));
    const ScenarioResult healthy = run_scenario(params);
    ASSERT_EQ(healthy.failure, "") << replay_command(seed);
    params.kill = static_cast<int>(random.below(static_cast<uint64_t>(params.p)));
    params.kill_at = random.below(healthy.time + 1);
    params.detection = detection;
    params.report_to_all = report_to_all;
    const ScenarioResult result = run_scenario(params);
    ASSERT_EQ(result.failure, "") << "rank " << params.kill << " died at " << params.kill_at << " ns; "
                                  << replay_command(seed);
    failed += result.failed;
  }
  EXPECT_TRUE(failed > 0 || seeds.first == seeds.last);
}

TEST(Failures, EveryRankLearnsOfADeath) { kill_a_rank(200, sim::Detection::kByItself, true); }
TEST(Failures, RanksThatHaveToLookLearnOfADeath) { kill_a_rank(100, sim::Detection::kWhenChecked, true); }
TEST(Failures, ADeathIsLearntOfByThoseWhoTalkedToTheRankOrWaitForIt) {
  kill_a_rank(100, sim::Detection::kByItself, false);
}

}  // namespace
}  // namespace ibcoll
