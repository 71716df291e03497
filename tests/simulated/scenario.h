// SPDX-License-Identifier: BSD-3-Clause
// One random run: network, nodes, teams, requests, arrivals, all from a seed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/collectives/algorithm.h"
#include "runtime/sim/job.h"
#include "tests/simulated/collective_case.h"

namespace ibcoll {

struct ScenarioParams {
  uint64_t seed = 1;
  const Algorithm* algorithm = nullptr;  // nullptr: any
  int p = 0;                             // 0: random, mostly small
  int most_requests = 3;
  int most_rounds = 3;
};

struct ScenarioResult {
  std::string failure;  // "": all went well
  uint64_t trace = 0;
  Time time = 0;
  uint64_t turns = 0;
  SimCounters counters;
};

ScenarioResult run_scenario(const ScenarioParams& params);

// For other tests: a random job, its node map forced to one node when the algorithm needs it.
SimJobParams random_job(SimRandom& random, int p, bool one_node);
int random_p(SimRandom& random);
// Virtual times at which ranks start: all at once, spread, or exactly k ranks late.
std::vector<Time> random_arrivals(SimRandom& random, int p);
// The shape of a call on a team of the job.
Shape shape_of(SimJob& job, int team, const CollectiveCase& call, SimReads reads, uint64_t area_bytes);

}  // namespace ibcoll
