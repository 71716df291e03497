// SPDX-License-Identifier: BSD-3-Clause
// A rank dies at a random moment: every other rank ends with PEER_FAILED or has completed before, in bounded (virtual)
// time, and nobody writes to anybody's buffers afterwards.
#include <gtest/gtest.h>

#include <memory>
#include <numeric>

#include "runtime/collectives/registry.h"
#include "tests/simulated/replay.h"
#include "tests/simulated/scenario.h"

namespace ibcoll {
namespace {

void kill_a_rank(uint64_t usual, SimDetection detection, bool report_to_all) {
  const Seeds seeds(usual);
  uint64_t failed = 0;
  for (uint64_t seed = seeds.first; seed <= seeds.last; ++seed) {
    SimRandom random = SimRandom(seed).split(99);
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

TEST(Failures, EveryRankLearnsOfADeath) { kill_a_rank(200, SimDetection::kByItself, true); }
TEST(Failures, RanksThatHaveToLookLearnOfADeath) { kill_a_rank(100, SimDetection::kWhenChecked, true); }
TEST(Failures, ADeathIsLearntOfByThoseWhoTalkedToTheRankOrWaitForIt) {
  kill_a_rank(100, SimDetection::kByItself, false);
}

// The kernel lets a rank read another's memory at the start and then does not: who cannot read fails, and so does everybody
// who would have got what it read.
void refuse_reads(uint64_t seed, ibcoll_collective_t collective) {
  SimRandom random(seed);
  const int p = 2 + static_cast<int>(random.below(7));
  SimJobParams params = random_job(random, p);
  params.network.node_of = std::vector<int>(static_cast<size_t>(p), 0);
  params.window_area_bytes = 4096;
  params.reads = SimReads::kSomePairs;
  SimJob job(params);
  std::vector<int> all(static_cast<size_t>(p));
  std::iota(all.begin(), all.end(), 0);
  const int team = job.make_team(all);
  CaseParams wanted = random_case(random, collective, p, 100'000, {});
  if (collective == IBCOLL_ALLREDUCE) wanted.count = 1 + random.below(20'000);
  CollectiveCase call(wanted, random.next());
  std::vector<std::unique_ptr<Request>> requests;
  for (int rank = 0; rank < p; ++rank) {
    requests.push_back(make_request(job.team(team, rank), call, *find_algorithm(collective, "single_copy")));
    SimStep step;
    step.request = requests.back().get();
    step.delay_ns = random.below(50'000);
    step.before_start = [&call, rank] { call.fill(rank, 0); };
    step.completed = [&call, rank](const Status& status) {
      if (status.ok()) {
        EXPECT_EQ(call.check(rank, 0), "") << "rank " << rank << " was told that all is well";
      }
    };
    job.add_step(rank, std::move(step));
  }
  const Status status = job.run();
  EXPECT_TRUE(status.ok()) << status.text();
}

TEST(Failures, AReadThatFailsSpoilsNobodysData) {
  const Seeds seeds(40);
  for (uint64_t seed = seeds.first; seed <= seeds.last; ++seed)
    for (const ibcoll_collective_t collective : {IBCOLL_BCAST, IBCOLL_ALLGATHER, IBCOLL_ALLTOALL, IBCOLL_ALLREDUCE})
      ASSERT_NO_FATAL_FAILURE(refuse_reads(seed, collective)) << replay_command(seed);
}

}  // namespace
}  // namespace ibcoll
