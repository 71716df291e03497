// SPDX-License-Identifier: BSD-3-Clause
// One rank of a test job: `ibcoll_run -n 4 ibcoll_api_ranks SCENARIO...`. Runs one scenario after the other, each with
// a context of its own, up to the first in which something was wrong; prints what was. `--list` names the scenarios.
#include <algorithm>
#include <span>
#include <string_view>
#include <vector>

#include "tests/multiprocess/scenario.h"

namespace ibcoll::multiprocess {
namespace {

std::vector<Scenario> all_scenarios() {
  std::vector<Scenario> all;
  for (const auto part :
       {request_scenarios(), waiting_scenarios(), team_scenarios(), member_scenarios(), data_scenarios(),
        reduction_scenarios(), user_operation_scenarios(), context_scenarios(), argument_scenarios(),
        mismatch_scenarios(), random_scenarios(), floating_point_scenarios(), mapped_memory_scenarios()})
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
  expect(counter(self.context, "questions_that_helped") == 0, "a stalled rank had to ask for what it was to be sent");
  expect_ok(ibcoll_context_destroy(self.context), "ibcoll_context_destroy");
}

// nullptr: there is none of that name.
const Scenario* find(const std::vector<Scenario>& all, std::string_view name) {
  const auto found = std::find_if(all.begin(), all.end(), [&](const Scenario& one) { return one.name == name; });
  return found == all.end() ? nullptr : &*found;
}

int usage(const char* program) {
  fmt::print(stderr, "usage: {} SCENARIO..., of those that --list names\n", program);
  return 2;
}

int main_of_rank(int argc, char** argv) {
  const std::vector<Scenario> all = all_scenarios();
  const std::span<char*> names(argv + 1, argv + std::max(argc, 1));
  if (names.size() == 1 && names[0] == std::string_view("--list")) {
    for (const Scenario& scenario : all) fmt::print("{}\n", scenario.name);
    return 0;
  }
  if (names.empty()) return usage(argv[0]);
  for (const char* const name : names)
    if (!find(all, name)) return usage(argv[0]);
  for (const char* const name : names) {
    run(*find(all, name));
    if (complaints() == 0) continue;
    fmt::print(stderr, "in the scenario {}\n", name);
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace ibcoll::multiprocess

int main(int argc, char** argv) { return ibcoll::multiprocess::main_of_rank(argc, argv); }
