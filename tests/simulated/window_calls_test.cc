// SPDX-License-Identifier: BSD-3-Clause
// Calls that follow each other through one node window: a rank that runs ahead writes nothing that others still read.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "runtime/collectives/framework/registry.h"
#include "tests/simulated/scenario.h"

namespace ibcoll {
namespace {

constexpr uint64_t kArea = 4096;

CallParams bcast(int p) {
  CallParams params;
  params.collective = IBCOLL_BCAST;
  params.p = p;
  params.bytes = 64 * kArea;  // uses the areas of all ranks, each several times
  return params;
}

CallParams allgatherv(std::vector<uint64_t> counts) {
  CallParams params;
  params.collective = IBCOLL_ALLGATHERV;
  params.p = static_cast<int>(counts.size());
  params.counts = std::move(counts);
  return params;
}

// All ranks make the calls one after the other, each by the algorithm "shm"; rank `late` begins the second one late.
void run_calls(const std::vector<CallParams>& calls, int late) {
  const int p = calls.front().p;
  SimJobParams params;
  params.network.ranks = p;
  params.network.node_of = std::vector<int>(static_cast<size_t>(p), 0);
  params.window_area_bytes = kArea;
  params.lazy = 0;
  SimJob job(params);
  const int team = job.make_world();
  std::vector<std::unique_ptr<CollectiveCase>> cases;
  std::vector<std::unique_ptr<Request>> requests;
  for (size_t i = 0; i < calls.size(); ++i) {
    cases.push_back(std::make_unique<CollectiveCase>(calls[i], i));
    CollectiveCase& buffers = *cases.back();
    for (int rank = 0; rank < p; ++rank) {
      requests.push_back(make_request(job.team(team, rank), buffers, *find_algorithm(calls[i].collective, "shm")));
      SimStep step;
      step.request = requests.back().get();
      if (rank == late && i == 1) step.delay_ns = 50'000'000;
      step.before_start = [&buffers, rank] { buffers.at(rank).fill(0); };
      step.completed = [&buffers, rank, i](const Status& status) {
        EXPECT_TRUE(status.ok()) << status.text();
        EXPECT_EQ(buffers.at(rank).check(0), "") << "rank " << rank << " in call " << i;
      };
      job.add_step(rank, std::move(step));
    }
  }
  const Status status = job.run();
  EXPECT_TRUE(status.ok()) << status.text();
}

// The root has nothing of its own to write to its area, and does not wait for the late rank, which has nothing for it.
TEST(WindowCalls, ABroadcastLeavesTheBlocksOfTheAllgatherBeforeItAlone) {
  for (const int late : {1, 2}) {
    std::vector<uint64_t> counts(3, kArea / 2);
    counts[0] = counts[static_cast<size_t>(late)] = 0;
    run_calls({bcast(3), allgatherv(counts), bcast(3)}, late);
  }
}

}  // namespace
}  // namespace ibcoll
