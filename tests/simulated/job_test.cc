// SPDX-License-Identifier: BSD-3-Clause
// A simulated job that makes no progress ends with an error that says what each rank waits for.
#include "tools/ibcoll_sim/job.h"

#include <gtest/gtest.h>

#include "runtime/base/json.h"
#include "runtime/collectives/framework/registry.h"
#include "tests/simulated/scenario.h"

namespace ibcoll {
namespace {

class StuckJob : public ::testing::Test {
 protected:
  // Two ranks of which only rank 0 starts a barrier.
  Status run(SimJobParams params) {
    params.network.ranks = 2;
    SimJob job(params);
    const int team = job.make_team({0, 1});
    CallParams barrier;
    barrier.p = 2;
    CollectiveCase call(barrier, 1);
    const auto request = make_request(job.team(team, 0), call, *find_algorithm(IBCOLL_BARRIER, "dissemination"));
    SimStep step;
    step.request = request.get();
    job.add_step(0, step);
    const Status status = job.run();
    if (request->in_flight()) request->end(status);
    now_ = job.network().now();
    passes_ = job.passes();
    return status;
  }
  Time now_ = 0;
  uint64_t passes_ = 0;
};

TEST_F(StuckJob, EndsAtItsDeadline) {
  SimJobParams params;
  params.deadline_ns = 3'000'000'000;
  params.limits.stall_ns = 500'000'000;
  const Status status = run(params);
  EXPECT_EQ(status.code(), IBCOLL_ERR_TIMEOUT);
  EXPECT_NE(status.text().find("rank 0: barrier"), std::string::npos) << status.text();
  EXPECT_LT(now_, 4'000'000'000u);
}

// Busy without an end: nothing is ever accepted, and the time that passes with each try is too short to reach a
// deadline.
TEST_F(StuckJob, EndsAfterTooManyPasses) {
  SimJobParams params;
  params.network.refuse_permille = 1000;
  params.deadline_ns = ~Time{0};
  params.most_passes = 5000;
  const Status status = run(params);
  EXPECT_EQ(status.code(), IBCOLL_ERR_TIMEOUT);
  EXPECT_NE(status.text().find("5000 passes"), std::string::npos) << status.text();
  EXPECT_EQ(passes_, 5000u);
}

// Ranks that wait for long ask those that they wait for, and these only: the others of their node, and leaders each
// other.
TEST(AbsentRank, OnlyLeadersTalkToOtherNodes) {
  SimJobParams params;
  params.network.ranks = 6;
  params.network.node_of = {0, 0, 0, 1, 1, 1};
  params.deadline_ns = 3 * params.limits.stall_ns;
  SimJob job(params);
  const int team = job.make_team({0, 1, 2, 3, 4, 5});
  CallParams allgather;
  allgather.collective = IBCOLL_ALLGATHER;
  allgather.p = 6;
  allgather.bytes = 100;
  CollectiveCase call(allgather, 1);
  const Algorithm& algorithm = *find_algorithm(IBCOLL_ALLGATHER, "pap_shm_direct");
  std::vector<std::unique_ptr<Request>> requests;
  for (int rank = 0; rank < 5; ++rank) {
    requests.push_back(make_request(job.team(team, rank), call, algorithm));
    SimStep step;
    step.request = requests.back().get();
    job.add_step(rank, step);
  }
  const Status status = job.run();
  EXPECT_EQ(status.code(), IBCOLL_ERR_TIMEOUT) << status.text();
  for (const char* const waits :
       {"rank 3: allgather (pap_shm_direct) #1 of 100 bytes per block waits for data of rank 5 in step",
        "rank 4: allgather (pap_shm_direct) #1 of 100 bytes per block waits for data of rank 3 in step"})
    EXPECT_NE(status.text().find(waits), std::string::npos) << status.text();
  for (int rank = 0; rank < 6; ++rank) {
    const bool leads = rank % 3 == 0;
    EXPECT_EQ(job.network().transport(rank).describe().text("connections"), leads ? "3" : "2") << rank;
  }
  for (const auto& request : requests)
    if (request->in_flight()) request->end(status);
}

// A root that waits for many asks some of them, others each time.
TEST(AbsentRanks, AreAskedAFewAtATime) {
  constexpr int kRanks = 60;
  SimJobParams params;
  params.network.ranks = kRanks;
  for (int rank = 0; rank < kRanks; ++rank) params.network.node_of.push_back(rank);
  params.deadline_ns = 7 * params.limits.stall_ns / 2;
  SimJob job(params);
  const int team = job.make_world();
  CallParams gather;
  gather.collective = IBCOLL_GATHER;
  gather.p = kRanks;
  gather.bytes = 100;
  gather.scheme = IBCOLL_SCHEME_COPY;
  CollectiveCase call(gather, 1);
  const std::unique_ptr<Request> request =
      make_request(job.team(team, 0), call, *find_algorithm(IBCOLL_GATHER, "linear"));
  SimStep step;
  step.request = request.get();
  job.add_step(0, step);
  const Status status = job.run();
  EXPECT_EQ(status.code(), IBCOLL_ERR_TIMEOUT) << status.text();
  EXPECT_EQ(job.network().transport(0).describe().text("connections"), "48") << "three times 16 of 59";
  request->end(status);
}

}  // namespace
}  // namespace ibcoll
