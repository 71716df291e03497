// SPDX-License-Identifier: BSD-3-Clause
// One rank of a test job: `ibcoll_run -n 4 ibcoll_api_ranks SCENARIO`. Ends with 0 when nothing was wrong; prints what
// was. `--list` names the scenarios.
#include <cstdio>
#include <cstring>

#include "tests/multiprocess/scenario.h"

namespace ibcoll::multiprocess {
namespace {

std::vector<Scenario> all_scenarios() {
  std::vector<Scenario> all;
  for (const auto part : {request_scenarios(), waiting_scenarios(), team_scenarios(), data_scenarios(),
                          reduction_scenarios(), user_operation_scenarios(), context_scenarios(), argument_scenarios(),
                          mismatch_scenarios(), random_scenarios()})
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

void run(const Scenario& scenario) {
  Rank self;
  if (!scenario.joins) {
    scenario.run(self);
    return;
  }
  if (!expect_ok(ibcoll_context_create(nullptr, &self.context), "ibcoll_context_create")) return;
  self.world = ibcoll_team_world(self.context);
  self.rank = ibcoll_context_rank(self.context);
  self.size = ibcoll_context_size(self.context);
  set_rank_of_lines(self.rank);
  scenario.run(self);
  expect_ok(ibcoll_context_destroy(self.context), "ibcoll_context_destroy");
}

int main_of_rank(int argc, char** argv) {
  const std::vector<Scenario> all = all_scenarios();
  const std::string wanted = argc == 2 ? argv[1] : "";
  for (const Scenario& scenario : all) {
    if (wanted == "--list") fmt::print("{}\n", scenario.name);
    if (wanted != scenario.name) continue;
    run(scenario);
    return complaints() == 0 ? 0 : 1;
  }
  if (wanted == "--list") return 0;
  fmt::print(stderr, "usage: {} SCENARIO, one of those that --list names\n", argv[0]);
  return 2;
}

}  // namespace
}  // namespace ibcoll::multiprocess

int main(int argc, char** argv) { return ibcoll::multiprocess::main_of_rank(argc, argv); }
