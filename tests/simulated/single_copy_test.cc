// SPDX-License-Identifier: BSD-3-Clause
// Collectives whose ranks read each other's memory: buffers of many segments, and reads that the kernel refuses
// although it allowed them at the start.
#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "runtime/collectives/framework/pair.h"
#include "runtime/collectives/framework/registry.h"
#include "tests/simulated/replay.h"
#include "tests/simulated/scenario.h"

namespace ibcoll {
namespace {

constexpr std::pair<ibcoll_collective_t, const char*> kReaders[] = {
    {IBCOLL_BCAST, "single_copy"},    {IBCOLL_ALLGATHER, "single_copy"}, {IBCOLL_ALLGATHERV, "single_copy"},
    {IBCOLL_ALLTOALL, "single_copy"}, {IBCOLL_ALLTOALLV, "shm"},         {IBCOLL_ALLREDUCE, "single_copy"},
    {IBCOLL_SCATTERV, "pair"},        {IBCOLL_EXSCAN, "halves"}};

// Ranks of one node make one call. Those that get IBCOLL_OK have the right data. Returns the number of the others.
int run_reader(uint64_t seed, ibcoll_collective_t collective, const char* algorithm, sim::Reads reads) {
  sim::Random random(seed);
  const bool of_pairs = find_algorithm(collective, algorithm)->why_not == applies_to_pairs;
  const int p = of_pairs ? 2 : 2 + static_cast<int>(random.below(7));
  SimJobParams params = random_job(random, p);
  params.network.node_of = std::vector<int>(static_cast<size_t>(p), 0);
  params.window_area_bytes = 4096;
  params.reads = reads;
  params.blocks.read_from = 500;
  SimJob job(params);
  const int team = job.make_world();
  CallParams wanted = random_case(random, collective, p, 100'000, {});
  if (wanted.row().reduces()) wanted.count = random.below(100'000);
  CollectiveCase call(wanted, random.next());
  std::vector<std::unique_ptr<Request>> requests;
  int went_well = 0;
  for (int rank = 0; rank < p; ++rank) {
    requests.push_back(make_request(job.team(team, rank), call, *find_algorithm(collective, algorithm)));
    SimStep step;
    step.request = requests.back().get();
    step.delay_ns = random.below(50'000);
    step.before_start = [&call, rank] { call.at(rank).fill(0); };
    step.completed = [&call, &went_well, rank](const Status& status) {
      if (!status.ok()) return;
      ++went_well;
      EXPECT_EQ(call.at(rank).check(0), "") << "rank " << rank << " got IBCOLL_OK";
    };
    job.add_step(rank, std::move(step));
  }
  const Status status = job.run();
  EXPECT_TRUE(status.ok()) << status.text();
  return p - went_well;
}

TEST(SingleCopyCollectives, MoveBuffersOfManySegments) {
  const Seeds seeds(8, 30);
  for (uint64_t seed = seeds.first; seed <= seeds.last && !HasFailure(); ++seed)
    for (const auto& [collective, algorithm] : kReaders)
      EXPECT_EQ(run_reader(seed, collective, algorithm, sim::Reads::kAll), 0) << replay_command(seed);
}

TEST(SingleCopyCollectives, WhatMayNotBeReadAnyMoreIsSent) {
  const Seeds seeds(8, 40);
  for (uint64_t seed = seeds.first; seed <= seeds.last && !HasFailure(); ++seed)
    for (const auto& [collective, algorithm] : kReaders)
      for (const sim::Reads reads : {sim::Reads::kSomePairs, sim::Reads::kNone})
        EXPECT_EQ(run_reader(seed, collective, algorithm, reads), 0) << replay_command(seed);
}

TEST(SingleCopyCollectives, AReadThatFailsSpoilsNobodysData) {
  const Seeds seeds(8, 40);
  int failed = 0;
  for (uint64_t seed = seeds.first; seed <= seeds.last && !HasFailure(); ++seed) {
    SCOPED_TRACE(replay_command(seed));
    for (const auto& [collective, algorithm] : kReaders)
      failed += run_reader(seed, collective, algorithm, sim::Reads::kSomeFail);
  }
  EXPECT_TRUE(failed > 0 || seeds.first == seeds.last);
}

}  // namespace
}  // namespace ibcoll
