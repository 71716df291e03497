// SPDX-License-Identifier: BSD-3-Clause
// Teams: from lists, by color and key, nested, many at a time, made and freed without end.
#include <algorithm>
#include <cstring>
#include <fstream>
#include <memory>

#include "tests/multiprocess/checked_call.h"
#include "tests/multiprocess/persistent_call.h"
#include "tests/multiprocess/scenario.h"

namespace ibcoll::multiprocess {
namespace {

void use(ibcoll_team_t team, uint64_t salt, std::initializer_list<uint64_t> sizes = {9, 9000}) {
  for (const uint64_t bytes : sizes)
    for (CallParams params : every_collective(bytes, ibcoll_team_size(team))) {
      params.salt = salt;
      CheckedCall(team, params).run(salt);
    }
}

// Where ranks read each other's memory, they need the processes of the ranks of the team.
void read_of_each_other(ibcoll_team_t team, uint64_t salt) {
  CallParams params;
  params.collective = IBCOLL_ALLGATHER;
  params.bytes = 9000;
  params.salt = salt;
  params.algorithm = "single_copy";
  PersistentCall call(team, params);
  if (call.applies() && call.start(0)) call.wait(0);
}

// The ranks of a new team have the order of the list.
void create_from_list(Rank& self) {
  const int p = self.size;
  std::vector<std::vector<int>> lists(4);
  for (int i = 0; i < p; ++i) lists[0].push_back(p - 1 - i);                                       // all, backwards
  for (int i = 0; i < p; i += 2) lists[1].push_back(i);                                            // every other one
  for (int i = 0; i < p; ++i) lists[2].push_back((2 * i + i / ((p + 1) / 2) * (p % 2 == 0)) % p);  // evens, odds
  lists[3] = {p / 2};                                                                              // one alone
  uint64_t salt = 0;
  for (const std::vector<int>& list : lists) {
    ibcoll_team_t made = nullptr;
    expect_ok(ibcoll_team_create(self.world, list.data(), static_cast<int>(list.size()), &made), "ibcoll_team_create");
    const TeamOwner team(made);
    ++salt;
    const auto position = static_cast<int>(std::find(list.begin(), list.end(), self.rank) - list.begin());
    const bool member = position < static_cast<int>(list.size());
    expect(member == (made != nullptr), "{} the list, but {} team", member ? "in" : "not in", made ? "a" : "no");
    if (!made) continue;
    expect(ibcoll_team_rank(made) == position, "rank {} of the team, not {}", ibcoll_team_rank(made), position);
    expect(ibcoll_team_size(made) == static_cast<int>(list.size()), "the team has {} ranks", ibcoll_team_size(made));
    use(made, salt);
    read_of_each_other(made, salt);
  }
}

// Keys reverse the order; equal keys keep that of the parent; some ranks want no team.
void split_by_color_and_key(Rank& self) {
  const int colors = 2, color = self.rank % 3 == 2 ? -1 - self.rank : self.rank % colors;
  const TeamOwner team = split(self.world, color, -self.rank / 2);
  if (!team.get()) return;
  std::vector<std::pair<int, int>> members;
  for (int i = 0; i < self.size; ++i)
    if (i % 3 != 2 && i % colors == color) members.emplace_back(-i / 2, i);
  std::sort(members.begin(), members.end());
  expect(ibcoll_team_size(team.get()) == static_cast<int>(members.size()), "{} ranks", ibcoll_team_size(team.get()));
  std::vector<int> found(members.size());
  expect_ok(ibcoll_allgather(team.get(), &self.rank, found.data(), sizeof(int)), "allgather");
  for (size_t i = 0; i < members.size(); ++i)
    expect(found[i] == members[i].second, "rank {} of the team is {}, not {}", i, found[i], members[i].second);
  use(team.get(), static_cast<uint64_t>(color));
}

// Algorithms for one node are demanded where there are several: that is refused to the caller, and does not concern
// what the library exchanges for itself. Nor does it concern a call that says "auto".
void forced_where_it_does_not_apply(Rank& self) {
  int sum = 0;
  expect_error(ibcoll_barrier(self.world), IBCOLL_ERR_NOT_APPLICABLE, "IBCOLL_BARRIER", "barrier");
  std::vector<int> all(static_cast<size_t>(self.size));
  expect_error(ibcoll_allgather(self.world, &self.rank, all.data(), sizeof(int)), IBCOLL_ERR_NOT_APPLICABLE,
               "IBCOLL_ALLGATHER", "allgather");
  ibcoll_collective_args_t args{};
  args.struct_size = sizeof args;
  args.algorithm = "auto";
  ibcoll_request_t request = nullptr;
  expect_ok(ibcoll_collective_init(self.world, &args, &request), "a barrier by any algorithm");
  expect_ok(ibcoll_start(request), "its start");
  expect_ok(ibcoll_wait(request), "its end");
  expect_ok(ibcoll_request_free(request), "its release");
  const TeamOwner team = split(self.world, 0, -self.rank);
  expect_ok(ibcoll_allreduce(team.get(), &self.rank, &sum, 1, IBCOLL_INT32, IBCOLL_SUM), "allreduce");
  expect(sum == self.size * (self.size - 1) / 2, "the sum of all ranks is {}", sum);
}

// Halves of halves down to single ranks, all alive at once, used from the inside out and beside the world.
void nested_splits(Rank& self) {
  std::vector<TeamOwner> teams;
  for (ibcoll_team_t parent = self.world; ibcoll_team_size(parent) > 1; parent = teams.back().get()) {
    const int half = (ibcoll_team_size(parent) + 1) / 2;
    teams.push_back(split(parent, ibcoll_team_rank(parent) / half, ibcoll_team_rank(parent)));
    if (!teams.back().get()) return;
  }
  uint64_t salt = static_cast<uint64_t>(self.rank);
  for (auto team = teams.rbegin(); team != teams.rend(); ++team) {
    int first = self.rank;  // what tells this team from its sister
    expect_ok(ibcoll_bcast(team->get(), &first, sizeof first, 0), "bcast");
    salt = static_cast<uint64_t>(first) * 100 + static_cast<uint64_t>(ibcoll_team_size(team->get()));
    use(team->get(), salt);
  }
  use(self.world, 7);
}

// Collectives of overlapping teams, all in flight together.
void several_teams_in_flight(Rank& self) {
  const TeamOwner teams[] = {split(self.world, 0, -self.rank), split(self.world, self.rank % 2, 0),
                             split(self.world, self.rank < (self.size + 1) / 2, self.rank)};
  std::vector<std::unique_ptr<CheckedCall>> calls;
  std::vector<ibcoll_request_t> requests;
  uint64_t salt = 0;
  for (const uint64_t bytes : {uint64_t{50}, uint64_t{20'000}}) {
    for (int i = 0; i < kCollectives; ++i) {
      for (const TeamOwner& team : teams) {
        CallParams params = every_collective(bytes, ibcoll_team_size(team.get()))[static_cast<size_t>(i)];
        params.salt = ++salt;
        calls.push_back(std::make_unique<CheckedCall>(team.get(), params));
        const ibcoll_collective_args_t args = calls.back()->args();
        requests.push_back(nullptr);
        expect_ok(ibcoll_collective_init(team.get(), &args, &requests.back()), "init");
      }
    }
  }
  for (uint64_t round = 0; round < 3; ++round) {
    for (size_t i = 0; i < calls.size(); ++i) {
      calls[i]->fill(round);
      expect_ok(ibcoll_start(requests[i]), "start");
    }
    for (size_t i = calls.size(); i-- > 0;) {
      expect_ok(ibcoll_wait(requests[i]), calls[i]->params().describe());
      calls[i]->verify(round);
    }
  }
  for (ibcoll_request_t request : requests) expect_ok(ibcoll_request_free(request), "free");
}

// Each new team gets the node window of the one before, and must not find that one's data there: not by the memory
// itself, nor by what a device remembers of it.
void remade_teams(Rank& self) {
  for (uint64_t round = 0; round < 4; ++round) {
    const TeamOwner team = split(self.world, 0, self.rank);
    for (const ibcoll_collective_t collective : {IBCOLL_ALLGATHER, IBCOLL_ALLTOALL}) {
      CallParams params;
      params.collective = collective;
      params.bytes = 10'000;
      params.salt = round;
      params.scheme = IBCOLL_SCHEME_ZERO_COPY;
      params.algorithm = "pap_shm_direct";
      CheckedCall call(team.get(), params);
      const ibcoll_collective_args_t args = call.args();
      ibcoll_request_t request = nullptr;
      if (!expect_ok(ibcoll_collective_init(team.get(), &args, &request), params.describe())) return;
      call.fill(round);
      expect_ok(ibcoll_start(request), "start");
      expect_ok(ibcoll_wait(request), "wait");
      call.verify(round);
      expect_ok(ibcoll_request_free(request), "free");
    }
  }
}

// kB of a line of /proc/self/status.
long process_memory(const char* name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(name)) return std::strtol(line.c_str() + std::strlen(name), nullptr, 10);
  return 0;
}

// Thousands of teams, some never used, none left: neither shared nor private memory grows.
void churn(Rank& self) {
  long shared = 0, total = 0;
  constexpr int kWarm = 200, kTeams = 2500;
  for (int i = 0; i < kTeams && complaints() == 0; ++i) {
    const TeamOwner team = split(self.world, i % 3 == 0 ? self.rank % 2 : 0, i % 2 == 0 ? self.rank : -self.rank);
    if (i % 5 == 0) expect_ok(ibcoll_barrier(team.get()), "barrier");
    if (i % 50 == 0) use(team.get(), static_cast<uint64_t>(i), {100});
    if (i != kWarm) continue;
    shared = process_memory("RssShmem:");
    total = process_memory("VmSize:");
  }
  const long shared_now = process_memory("RssShmem:"), total_now = process_memory("VmSize:");
  expect(shared_now - shared < 4096, "shared memory grew from {} to {} kB", shared, shared_now);
  expect(total_now - total < 16'384, "the address space grew from {} to {} kB", total, total_now);
}

// What cannot be a team is refused before anything is exchanged, and the world works on.
void bad_teams(Rank& self) {
  ibcoll_team_t team = nullptr;
  const int p = self.size;
  const int twice[] = {0, 1, 0}, beyond[] = {0, p}, negative[] = {-1};
  const auto refused = [&](ibcoll_status_t status, const char* why) {
    expect_error(status, IBCOLL_ERR_INVALID_ARGUMENT, why, "a bad team");
    expect(team == nullptr, "a refused call gave a team");
  };
  refused(ibcoll_team_create(self.world, twice, 3, &team), "rank 0 is listed twice");
  refused(ibcoll_team_create(self.world, beyond, 2, &team), fmt::format("ranks[1] is {}", p).c_str());
  refused(ibcoll_team_create(self.world, negative, 1, &team), "ranks[0] is -1");
  refused(ibcoll_team_create(self.world, twice, 0, &team), "at least one rank");
  refused(ibcoll_team_create(self.world, twice, -3, &team), "at least one rank");
  refused(ibcoll_team_create(self.world, nullptr, 2, &team), "NULL");
  refused(ibcoll_team_create(nullptr, twice, 2, &team), "NULL");
  refused(ibcoll_team_create(self.world, twice, 2, nullptr), "NULL");
  refused(ibcoll_team_split(nullptr, 0, 0, &team), "NULL");
  refused(ibcoll_team_split(self.world, 0, 0, nullptr), "NULL");
  refused(ibcoll_team_free(self.world), "belongs to its context");
  expect_ok(ibcoll_team_free(nullptr), "free of NULL");
  expect(ibcoll_team_rank(nullptr) == -1 && ibcoll_team_size(nullptr) == 0, "NULL is no team");
  use(self.world, 1);
}

constexpr Scenario kTeamScenarios[] = {
    {"create_from_list", create_from_list},
    {"split_by_color_and_key", split_by_color_and_key},
    {"nested_splits", nested_splits},
    {"forced_where_it_does_not_apply", forced_where_it_does_not_apply},
    {"several_teams_in_flight", several_teams_in_flight},
    {"remade_teams", remade_teams},
    {"churn", churn},
    {"bad_teams", bad_teams},
};

}  // namespace

std::span<const Scenario> team_scenarios() { return kTeamScenarios; }

}  // namespace ibcoll::multiprocess
