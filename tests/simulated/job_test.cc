// SPDX-License-Identifier: BSD-3-Clause
// A simulated job that gets nowhere ends all the same, and says who waits for what.
#include "runtime/sim/job.h"

#include <gtest/gtest.h>

#include "runtime/collectives/registry.h"
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
    CaseParams barrier;
    barrier.p = 2;
    CollectiveCase call(barrier, 1);
    const auto request = make_request(job.team(team, 0), call, *find_algorithm(IBCOLL_BARRIER, "dissemination"));
    SimStep step;
    step.request = request.get();
    job.add_step(0, step);
    const Status status = job.run();
    if (request->in_flight()) request->end(status);
    now_ = job.network().now();
    turns_ = job.turns();
    return status;
  }
  Time now_ = 0;
  uint64_t turns_ = 0;
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

// Busy without an end: nothing is ever accepted, and the time that passes with each try is too short to reach a deadline.
TEST_F(StuckJob, EndsAfterTooManyTurns) {
  SimJobParams params;
  params.network.refuse_permille = 1000;
  params.deadline_ns = ~Time{0};
  params.most_turns = 5000;
  const Status status = run(params);
  EXPECT_EQ(status.code(), IBCOLL_ERR_TIMEOUT);
  EXPECT_NE(status.text().find("5000 turns"), std::string::npos) << status.text();
  EXPECT_EQ(turns_, 5000u);
}

}  // namespace
}  // namespace ibcoll
