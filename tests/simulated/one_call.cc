// SPDX-License-Identifier: BSD-3-Clause
#include "tests/simulated/one_call.h"

#include <algorithm>
#include <memory>

#include "runtime/collectives/framework/registry.h"
#include "tests/simulated/scenario.h"

namespace ibcoll {

OneCallResult run_one_call(const OneCall& call) {
  const int p = call.params.p;
  SimJobParams params;
  params.network.ranks = p;
  params.network.node_of = call.node_of;
  params.network.between_nodes = {call.alpha_ns, 0, 1000};
  params.network.within_node = params.network.between_nodes;
  params.network.slot_bytes = 1 << 24;
  params.network.slots_per_pair = 4096;
  params.limits.eager_bytes = 1 << 24;
  params.limits.eager_ahead = 1 << 20;
  params.window_area_bytes = call.area_bytes;
  params.lazy = 0;
  SimJob job(params);
  const int team = job.make_world();
  CallParams wanted = call.params;
  wanted.scheme = call.announced ? IBCOLL_SCHEME_ZERO_COPY : IBCOLL_SCHEME_COPY;
  CollectiveCase buffers(wanted, 1);
  const Algorithm* const algorithm = find_algorithm(wanted.collective, call.algorithm);
  EXPECT_NE(algorithm, nullptr) << call.algorithm;
  if (!algorithm) return {};
  std::vector<std::unique_ptr<Request>> requests;
  for (int rank = 0; rank < p; ++rank) {
    requests.push_back(make_request(job.team(team, rank), buffers, *algorithm, call.parameter));
    SimStep step;
    step.request = requests.back().get();
    step.before_start = [&buffers, rank] { buffers.at(rank).fill(0); };
    step.completed = [&buffers, rank](const Status& status) {
      EXPECT_TRUE(status.ok()) << status.text();
      EXPECT_EQ(buffers.at(rank).check(0), "") << "rank " << rank;
    };
    job.add_step(rank, std::move(step));
  }
  const Status status = job.run();
  EXPECT_TRUE(status.ok()) << status.text();
  OneCallResult result;
  result.time = job.network().now();
  result.rounds = static_cast<double>(result.time) / static_cast<double>(call.bytes_per_round);
  result.counters = job.network().counters();
  return result;
}

}  // namespace ibcoll
