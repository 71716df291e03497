// SPDX-License-Identifier: BSD-3-Clause
// One random run: network, nodes, teams, requests, arrivals, all from a seed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/collectives/framework/algorithm.h"
#include "tests/simulated/collective_case.h"
#include "tools/ibcoll_sim/job.h"

namespace ibcoll {

struct ScenarioParams {
  uint64_t seed = 1;
  const Algorithm* algorithm = nullptr;  // nullptr: any
  int p = 0;                             // 0: random, mostly small
  int most_requests = 3;
  int most_rounds = 3;
  // A rank that dies: calls may end with PEER_FAILED then.
  int kill = -1;
  Time kill_at = 0;
  sim::Detection detection = sim::Detection::kByItself;
  bool report_to_all = true;
};

struct ScenarioResult {
  std::string failure;  // "": all went well
  uint64_t trace = 0;
  Time time = 0;
  uint64_t passes = 0;
  uint64_t calls = 0;   // collectives that ran
  uint64_t failed = 0;  // steps that ended with PEER_FAILED
  sim::Counters counters;
};

ScenarioResult run_scenario(const ScenarioParams& params);

// True when the algorithm applies to some call on p ranks, of one node or two.
bool applies(const Algorithm& algorithm, int p);

// For other tests: a random job; with an algorithm, one in which it applies to some calls.
SimJobParams random_job(sim::Random& random, int p, const Algorithm* algorithm = nullptr);
int random_p(sim::Random& random);
// Virtual times at which ranks start: all at once, spread, or exactly k ranks late.
std::vector<Time> random_arrivals(sim::Random& random, int p);
// A request of one rank of a team; nullptr, and a test failure, when the arguments are refused.
std::unique_ptr<Request> make_request(Team& team, CollectiveCase& call, const Algorithm& algorithm,
                                      uint64_t parameter = 0, bool fixed_order = false);
// The shape of a call on a team of the job.
Shape shape_of(SimJob& job, int team, CollectiveCase& call, sim::Reads reads, uint64_t area_bytes);

}  // namespace ibcoll
