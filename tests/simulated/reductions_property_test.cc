// SPDX-License-Identifier: BSD-3-Clause
// How many messages the papers say that a reduction takes, counted in the simulator.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "runtime/collectives/framework/registry.h"
#include "tests/simulated/one_call.h"
#include "tests/simulated/scenario.h"

namespace ibcoll {
namespace {

std::vector<int> in_a_row(int p, int nodes) {
  std::vector<int> node_of;
  for (int rank = 0; rank < p; ++rank) node_of.push_back(rank * nodes / p);
  return node_of;
}

// Messages of one call of 64 elements per block, on consecutive ranks of the nodes; all go without an advertisement.
uint64_t messages(ibcoll_collective_t collective, const char* name, int p, int nodes, uint64_t parameter = 1) {
  const Algorithm& algorithm = *find_algorithm(collective, name);
  SimJobParams job_params;
  job_params.network.ranks = p;
  job_params.network.node_of = in_a_row(p, nodes);
  job_params.limits.eager_ahead = 1000;
  job_params.window_area_bytes = 65536;
  SimJob job(job_params);
  const int team = job.make_world();
  CallParams params;
  params.collective = collective;
  params.p = p;
  params.op = IBCOLL_SUM;
  params.count = 64;
  CollectiveCase call(params, 5);
  const Shape shape = shape_of(job, team, call, sim::Reads::kNone, job_params.window_area_bytes);
  EXPECT_EQ(algorithm.why_not(shape), nullptr) << name;
  std::vector<std::unique_ptr<Request>> requests;
  const uint64_t before = job.network().counters().messages;
  for (int rank = 0; rank < p; ++rank) {
    requests.push_back(make_request(job.team(team, rank), call, algorithm, algorithm.choose ? parameter : 0));
    SimStep step;
    step.request = requests.back().get();
    step.before_start = [&call, rank] { call.at(rank).fill(0); };
    job.add_step(rank, std::move(step));
  }
  const Status status = job.run();
  EXPECT_TRUE(status.ok()) << status.text();
  return job.network().counters().messages - before;
}

uint64_t number(int x) { return static_cast<uint64_t>(x); }

TEST(MessagesOfReductions, PowersOfTwo) {
  for (const int p : {2, 4, 8, 16}) {
    const int q = ceil_log2(p);
    EXPECT_EQ(messages(IBCOLL_ALLREDUCE, "recursive_doubling", p, 1), number(p * q));
    EXPECT_EQ(messages(IBCOLL_ALLREDUCE, "rabenseifner", p, 1), number(2 * p * q));
    EXPECT_EQ(messages(IBCOLL_REDUCE, "reduce_scatter_gather", p, 1), number(p * q + p - 1));
    EXPECT_EQ(messages(IBCOLL_REDUCE_SCATTER_BLOCK, "recursive_halving", p, 1), number(p * q));
  }
}

TEST(MessagesOfReductions, AnyNumberOfRanks) {
  for (const int p : {3, 5, 6, 7, 11, 13}) {
    const int q = ceil_log2(p), core = 1 << (q - 1), pairs = p - core;
    EXPECT_EQ(messages(IBCOLL_ALLREDUCE, "recursive_doubling", p, 1), number(core * (q - 1) + 2 * pairs));
    EXPECT_EQ(messages(IBCOLL_ALLREDUCE, "ring", p, 1), number(2 * p * (p - 1)));
    EXPECT_EQ(messages(IBCOLL_REDUCE, "binomial", p, 1), number(p - 1));
    EXPECT_EQ(messages(IBCOLL_REDUCE_SCATTER_BLOCK, "pairwise", p, 1), number(p * (p - 1)));
    int scan = 0;
    for (int distance = 1; distance < p; distance *= 2) scan += p - distance;
    EXPECT_EQ(messages(IBCOLL_SCAN, "recursive_doubling", p, 1), number(scan));
    // One or, where blocks go past the end of the vector, two in each of q rounds.
    const uint64_t circulant = messages(IBCOLL_REDUCE_SCATTER_BLOCK, "circulant", p, 1);
    EXPECT_GE(circulant, number(p * q));
    EXPECT_LE(circulant, number(2 * p * q));
    EXPECT_EQ(messages(IBCOLL_ALLREDUCE, "circulant", p, 1), 2 * circulant);
  }
}

// Leaders alone send.
TEST(MessagesOfReductions, NodePhases) {
  EXPECT_EQ(messages(IBCOLL_ALLREDUCE, "node_recursive_doubling", 16, 4), 8u);
  EXPECT_EQ(messages(IBCOLL_ALLREDUCE, "node_rabenseifner", 16, 4), 16u);
  EXPECT_EQ(messages(IBCOLL_ALLREDUCE, "node_ring", 15, 3), 12u);
  EXPECT_EQ(messages(IBCOLL_REDUCE, "node_binomial", 16, 4), 3u);
  EXPECT_EQ(messages(IBCOLL_REDUCE_SCATTER_BLOCK, "node_recursive_halving", 16, 4), 8u);
  EXPECT_EQ(messages(IBCOLL_EXSCAN, "node", 16, 4), 5u);
  EXPECT_EQ(messages(IBCOLL_EXSCAN, "node_chain", 16, 4, 65536), 3u);
  EXPECT_EQ(messages(IBCOLL_ALLREDUCE, "node_direct", 16, 4, 65536), 24u);
  EXPECT_EQ(messages(IBCOLL_REDUCE_SCATTER_BLOCK, "node_direct", 16, 4, 65536), 12u);
  EXPECT_EQ(messages(IBCOLL_REDUCE, "shm", 7, 1), 0u);
}

// An announcement and a half vector; then the half results, which wait for no announcement. In place they do: what is
// still being sent lies where they land.
TEST(Rabenseifner, TwoRanksWaitForOneAnnouncement) {
  constexpr Time kAlpha = 1'000'000;
  OneCall call;
  call.params.collective = IBCOLL_ALLREDUCE;
  call.params.p = 2;
  call.params.op = IBCOLL_SUM;
  call.params.count = 1000;
  call.algorithm = "rabenseifner";
  call.alpha_ns = kAlpha;
  call.announced = true;
  const Time time = run_one_call(call).time;
  EXPECT_GE(time, 3 * kAlpha);
  EXPECT_LT(time, 4 * kAlpha);
}

// How many ranks have ended all of their calls when a rank begins its first one a second late.
int done_without(int late, ibcoll_collective_t collective, int p, int nodes) {
  constexpr uint64_t kCalls = 20;
  SimJobParams job_params;
  job_params.network.ranks = p;
  job_params.network.node_of = in_a_row(p, nodes);
  job_params.window_area_bytes = 65536;
  job_params.lazy = 0;
  SimJob job(job_params);
  const int team = job.make_world();
  CallParams params;
  params.collective = collective;
  params.p = p;
  params.op = IBCOLL_SUM;
  params.count = 10;
  CollectiveCase call(params, 5);
  std::vector<std::unique_ptr<Request>> requests;
  int done = 0;
  bool begun = false;
  for (int rank = 0; rank < p; ++rank) {
    requests.push_back(
        make_request(job.team(team, rank), call, *find_algorithm(collective, "node_chain"), /*parameter=*/4096));
    for (uint64_t i = 0; i < kCalls; ++i) {
      SimStep step;
      step.request = requests.back().get();
      step.delay_ns = rank == late && i == 0 ? 1'000'000'000 : 0;
      step.before_start = [&, rank, i] {
        begun = begun || rank == late;
        call.at(rank).fill(i);
      };
      step.completed = [&, rank, i](const Status&) {
        EXPECT_EQ(call.at(rank).check(i), "") << "rank " << rank;
        done += i + 1 == kCalls && !begun;
      };
      job.add_step(rank, std::move(step));
    }
  }
  const Status status = job.run();
  EXPECT_TRUE(status.ok()) << status.text();
  return done;
}

TEST(ScanOfNodesInAChain, WaitsForLowerRanksOnly) {
  for (const ibcoll_collective_t collective : {IBCOLL_SCAN, IBCOLL_EXSCAN})
    for (const int nodes : {2, 3, 4})
      for (int late = 0; late < 9; ++late) EXPECT_EQ(done_without(late, collective, 9, nodes), late) << nodes;
}

}  // namespace
}  // namespace ibcoll
