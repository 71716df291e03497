// SPDX-License-Identifier: BSD-3-Clause
// Teams that their members make alone, whatever other ranks do. The host's exchange is that of another team.
#include <numeric>
#include <utility>
#include <vector>

#include "tests/multiprocess/checked_call.h"
#include "tests/multiprocess/scenario.h"

namespace ibcoll::multiprocess {
namespace {

// Members of a new team, and the team by which they gather. These are the same ranks in the same order.
struct Group {
  ibcoll_context_t context;
  ibcoll_team_t exchange;
  std::vector<int> ranks;
  int refuses = 0;  // what the exchange returns

  static int gather(void* self, const void* send, void* recv, size_t bytes) {
    const auto& group = *static_cast<Group*>(self);
    if (group.refuses != 0) return group.refuses;
    return ibcoll_allgather(group.exchange, send, recv, bytes) == IBCOLL_OK ? 0 : 1;
  }
  ibcoll_members_t members(uint64_t id) {
    return {sizeof(ibcoll_members_t), ranks.data(), static_cast<int>(ranks.size()), id, &Group::gather, this};
  }
  ibcoll_status_t create(uint64_t id, ibcoll_team_t* team) {
    const ibcoll_members_t given = members(id);
    return ibcoll_team_create_by_members(context, &given, team);
  }
  TeamOwner make(uint64_t id) {
    ibcoll_team_t team = nullptr;
    expect_ok(create(id, &team), "ibcoll_team_create_by_members");
    return TeamOwner(team);
  }
};

Group everybody(Rank& self) {
  Group group{self.context, self.world, std::vector<int>(static_cast<size_t>(self.size))};
  std::iota(group.ranks.begin(), group.ranks.end(), 0);
  return group;
}

// Two halves at the same time, that know nothing of each other: they make other teams, in another number and order.
void halves_make_teams(Rank& self) {
  const int half = self.rank % 2;
  const TeamOwner exchange = split(self.world, half, -self.rank);
  Group group{self.context, exchange.get(), {}};
  for (int rank = self.size - 1; rank >= 0; --rank)
    if (rank % 2 == half) group.ranks.push_back(rank);
  std::vector<TeamOwner> teams;
  const uint64_t count = half == 0 ? 3 : 7;
  for (uint64_t k = 0; k < count; ++k) {
    const uint64_t id = half == 0 ? k : 100 - k;
    teams.push_back(group.make(id));
    expect(ibcoll_team_rank(teams.back().get()) == ibcoll_team_rank(exchange.get()) &&
               ibcoll_team_size(teams.back().get()) == static_cast<int>(group.ranks.size()),
           "rank {} of {}", ibcoll_team_rank(teams.back().get()), ibcoll_team_size(teams.back().get()));
    for (size_t i = teams.size(); i-- > 0;)
      for (const CallParams& params : every_collective(700, static_cast<int>(group.ranks.size())))
        CheckedCall(teams[i].get(), params).run(id + i);
  }
  while (!teams.empty()) teams.erase(teams.begin());
}

// A rank may be in several, with others each time; each pair makes its team when its lower rank comes to it.
void pairs_make_teams(Rank& self) {
  std::vector<TeamOwner> exchanges;
  for (int first = 0; first + 1 < self.size; ++first)
    exchanges.push_back(split(self.world, self.rank == first || self.rank == first + 1 ? 0 : -1, 0));
  for (int first = 0; first + 1 < self.size; ++first) {
    if (self.rank != first && self.rank != first + 1) continue;
    Group pair{self.context, exchanges[static_cast<size_t>(first)].get(), {first, first + 1}};
    const TeamOwner team = pair.make(1000 + static_cast<uint64_t>(first));
    CheckedCall(team.get(), {.collective = IBCOLL_ALLTOALL, .bytes = 3000}).run(1);
  }
}

void bad_members(Rank& self) {
  Group group = everybody(self);
  ibcoll_team_t team = self.world;
  const auto refused = [&](ibcoll_status_t wanted, const char* why, uint64_t id) {
    expect_error(group.create(id, &team), wanted, why, "ibcoll_team_create_by_members");
    expect(team == nullptr, "a refused call gave a team");
    group = everybody(self);
  };
  expect_ok(ibcoll_barrier(self.world), "barrier");
  const uint64_t reserved = counter(self.context, "heap_reserved_bytes");
  const bool odd = self.rank == self.size - 1;
  for (const auto& [spoil, why] : {std::pair{0, "listed twice"}, {1, "the parent has ranks 0 to"}, {2, "count is 0"}}) {
    if (odd && spoil == 0) group.ranks[0] = group.ranks[1];
    if (odd && spoil == 1) group.ranks[0] = self.size;
    if (odd && spoil == 2) group.ranks.clear();
    refused(odd ? IBCOLL_ERR_INVALID_ARGUMENT : IBCOLL_ERR_MISMATCH, odd ? why : "cannot be a team",
            static_cast<uint64_t>(spoil));
  }
  if (odd) std::swap(group.ranks[0], group.ranks[1]);
  refused(IBCOLL_ERR_MISMATCH, "another list of ranks", 3);
  if (odd) group.ranks.erase(group.ranks.begin());
  refused(IBCOLL_ERR_MISMATCH, "another list of ranks", 4);
  refused(IBCOLL_ERR_MISMATCH, "or another id", odd ? 5 : 6);
  group.refuses = 7;
  refused(IBCOLL_ERR_BOOTSTRAP, "returned 7", 7);

  const auto gathers_nothing = [](void*, const void*, void*, size_t) { return 0; };
  ibcoll_members_t members = group.members(8);
  members.allgather = gathers_nothing;
  expect_error(ibcoll_team_create_by_members(self.context, &members, &team), IBCOLL_ERR_BOOTSTRAP, "own bytes",
               "an exchange that does nothing");

  // This rank alone.
  group.ranks.erase(group.ranks.begin() + self.rank);
  refused(IBCOLL_ERR_INVALID_ARGUMENT, "is not in the list", 8);
  members = group.members(9);
  members.allgather = nullptr;
  expect_error(ibcoll_team_create_by_members(self.context, &members, &team), IBCOLL_ERR_INVALID_ARGUMENT, "allgather",
               "no allgather");
  members.struct_size = 1;
  expect_error(ibcoll_team_create_by_members(self.context, &members, &team), IBCOLL_ERR_INVALID_ARGUMENT,
               "struct_size is 1", "a struct that is too short");
  expect_error(ibcoll_team_create_by_members(self.context, nullptr, &team), IBCOLL_ERR_INVALID_ARGUMENT, "NULL",
               "no members");
  expect_error(ibcoll_team_create_by_members(nullptr, &members, &team), IBCOLL_ERR_INVALID_ARGUMENT, "NULL",
               "no context");

  {
    const TeamOwner made = group.make(10);
    CheckedCall(made.get(), {.collective = IBCOLL_ALLREDUCE, .bytes = 80}).run(1);
  }
  expect_ok(ibcoll_barrier(self.world), "barrier");
  { const TeamOwner again = group.make(11); }  // looks at the windows that were left
  expect_ok(ibcoll_barrier(self.world), "barrier");
  { const TeamOwner again = group.make(12); }
  expect_ok(ibcoll_barrier(self.world), "barrier");
  const uint64_t now = counter(self.context, "heap_reserved_bytes");
  expect(now <= reserved + reserved / static_cast<uint64_t>(self.size), "{} bytes of windows are left of {}", now,
         reserved);
}

void many_teams(Rank& self) {
  constexpr uint64_t kAlive = 2'000, kInAll = 10'000;
  Group group = everybody(self);
  {
    std::vector<TeamOwner> teams;
    for (uint64_t id = 0; id < kAlive && complaints() == 0; ++id) {
      teams.push_back(group.make(id));
      if (id % 20 == 0) CheckedCall(teams.back().get(), {.collective = IBCOLL_ALLREDUCE, .bytes = 64}).run(id);
    }
    for (size_t i = 0; i < teams.size(); i += 100) expect_ok(ibcoll_barrier(teams[i].get()), "barrier");
  }
  for (uint64_t id = kAlive; id < kAlive + kInAll && complaints() == 0; ++id) {
    const TeamOwner team = group.make(id);
    if (id % 50 == 0) CheckedCall(team.get(), {.collective = IBCOLL_ALLTOALL, .bytes = 100}).run(id);
  }
}

constexpr Scenario kMemberScenarios[] = {
    {"halves_make_teams", halves_make_teams},
    {"pairs_make_teams", pairs_make_teams},
    {"bad_members", bad_members},
    {"many_teams", many_teams},
};

}  // namespace

std::span<const Scenario> member_scenarios() { return kMemberScenarios; }

}  // namespace ibcoll::multiprocess
