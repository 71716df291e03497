// SPDX-License-Identifier: BSD-3-Clause
// A thousand teams of one node at the same time, each of which is used. IBCOLL_TEST_RANKS: of how many ranks.
#include <gtest/gtest.h>

#include <cstdlib>
#include <numeric>
#include <vector>

#include "tests/multiprocess/checked_call.h"
#include "tests/multiprocess/fork_job.h"
#include "tests/multiprocess/scenario.h"

namespace ibcoll::multiprocess {
namespace {

constexpr int kTeams = 1000;
constexpr double kManySeconds = 120;

// All collectives that the window carries, with data beside the flags and in areas.
void use_team(ibcoll_team_t team, size_t number) {
  CheckedCall(team, {.collective = IBCOLL_ALLREDUCE, .bytes = 64}).run(number);
  if (number % 10 == 0) CheckedCall(team, {.collective = IBCOLL_ALLGATHER, .bytes = 2000}).run(number);
  if (number % 100 == 0) CheckedCall(team, {.collective = IBCOLL_BCAST, .bytes = 100'000}).run(number);
}

int make_and_use_teams(ForkedRank& self) {
  ibcoll_context_t context = nullptr;
  const ibcoll_context_params_t params{sizeof params, &self.bootstrap};
  if (!expect_ok(ibcoll_context_create(&params, &context), "ibcoll_context_create")) return 1;
  std::vector<int> all(static_cast<size_t>(self.size));
  std::iota(all.begin(), all.end(), 0);
  {
    std::vector<TeamOwner> teams;
    while (teams.size() < kTeams) {
      ibcoll_team_t team = nullptr;
      if (!expect_ok(ibcoll_team_create(ibcoll_team_world(context), all.data(), self.size, &team), "making a team"))
        break;
      teams.emplace_back(team);
      if (teams.size() % 2 == 0) use_team(team, teams.size());
    }
    for (size_t i = 0; i < teams.size() && complaints() == 0; ++i) use_team(teams[i].get(), i);
  }
  expect_ok(ibcoll_context_destroy(context), "ibcoll_context_destroy");
  return complaints() > 0 ? 1 : 0;
}

TEST(ManyTeams, OfOneNodeAllWork) {
  const char* const wanted = std::getenv("IBCOLL_TEST_RANKS");
  const int ranks = wanted ? std::atoi(wanted) : 4;
  ::setenv("IBCOLL_LOG", "error", 1);
  const std::vector<Ending> endings = ForkJob(ranks, 1).run(make_and_use_teams, kManySeconds);
  for (int rank = 0; rank < ranks; ++rank) {
    EXPECT_FALSE(endings[static_cast<size_t>(rank)].overdue) << "rank " << rank << " hangs";
    EXPECT_EQ(endings[static_cast<size_t>(rank)].code, 0) << "rank " << rank;
  }
}

}  // namespace
}  // namespace ibcoll::multiprocess
