// SPDX-License-Identifier: BSD-3-Clause
// A rank dies before, while or after a team is made or freed: the others get back all of the node's memory that the
// team had.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <numeric>
#include <string>
#include <thread>

#include "tests/multiprocess/checked_call.h"
#include "tests/multiprocess/fork_job.h"
#include "tests/multiprocess/scenario.h"
#include "tests/multiprocess/shared_state.h"

namespace ibcoll::multiprocess {
namespace {

constexpr int kJobRanks = 4;
constexpr int kDying = 3;

enum class Moment {
  kInATeam,           // the others free the team afterwards
  kAfterTheOthers,    // have freed the team
  kBeforeMaking,      // does not come to the making of the team
  kMakingAsLeader,    // has made the team's memory, and no other rank knows yet
  kMakingAsAnother,   // has begun to make the team, before the rank that provides the memory
  kLeaderAndAnother,  // as kMakingAsLeader; then rank 2 dies and has not come, so that the making fails
};

// These ranks live on, and no others.
int survivors_of(Moment moment) { return moment == Moment::kLeaderAndAnother ? 2 : kDying; }

struct Dying {
  std::atomic<pid_t> pids[kJobRanks];  // of the ranks that die
  std::atomic<int> freed{0};           // ranks that have freed the team
};

// The rank has died, and its parent has seen it.
void await_death(const Dying& shared, int rank = kDying) {
  const std::atomic<pid_t>& pid = shared.pids[rank];
  expect(await([&] { return pid != 0 && ::kill(pid, 0) != 0 && errno == ESRCH; }), "rank {} does not die", rank);
}

// The first of the list makes the window. `may_fail`: the error that may come instead, as ranks are dead.
ibcoll_team_t make(ibcoll_team_t parent, std::vector<int> list, const char* may_fail = nullptr) {
  ibcoll_team_t team = nullptr;
  const ibcoll_status_t status = ibcoll_team_create(parent, list.data(), static_cast<int>(list.size()), &team);
  if (may_fail && status != IBCOLL_OK)
    expect_error(status, IBCOLL_ERR_PEER_FAILED, may_fail, "ibcoll_team_create");
  else
    expect_ok(status, "ibcoll_team_create");
  return team;
}

const std::vector<int> kLeaderDies = {3, 0, 1, 2}, kLeaderLives = {0, 1, 2, 3};

bool leader_dies(Moment moment) { return moment == Moment::kMakingAsLeader || moment == Moment::kLeaderAndAnother; }

void die_while_making(ibcoll_context_t context, Moment moment, ibcoll_team_t parent) {
  if (moment == Moment::kBeforeMaking) ::raise(SIGKILL);
  const uint64_t before = counter(context, "heap_reserved_bytes");
  std::thread end([=] {
    // It waits inside for the others, which do not come before it is dead.
    const auto inside = [&] {
      return leader_dies(moment) ? counter(context, "heap_reserved_bytes") > before
                                 : ibcoll_context_describe(context, nullptr, 0) > 0;
    };
    expect(await(inside), "making the team waits for no rank, or no memory was made");
    ::raise(SIGKILL);
  });
  (void)make(parent, leader_dies(moment) ? kLeaderDies : kLeaderLives);
  end.join();
}

void lose_a_rank(ibcoll_context_t context, Moment moment, int rank, ibcoll_team_t parent, ibcoll_team_t survivors,
                 Dying& shared) {
  const bool dies = rank >= survivors_of(moment);
  if (moment >= Moment::kBeforeMaking) {
    if (rank == kDying) return die_while_making(context, moment, parent);
    await_death(shared);
    if (dies) ::raise(SIGKILL);
    if (moment == Moment::kLeaderAndAnother) await_death(shared, 2);
    const bool one_is_missing = moment == Moment::kBeforeMaking || moment == Moment::kLeaderAndAnother;
    // A rank may get what it needs of the dead one, and learns of the death when it uses the team.
    ibcoll_team_t team = make(parent, leader_dies(moment) ? kLeaderDies : kLeaderLives,
                              moment == Moment::kLeaderAndAnother ? "failed" : "rank 3");
    expect(team == nullptr || !one_is_missing, "a team was made without a rank");
    if (team) expect_error(ibcoll_barrier(team), IBCOLL_ERR_PEER_FAILED, "rank 3", "barrier without the dead");
    if (team) expect_ok(ibcoll_team_free(team), "ibcoll_team_free");
    return;
  }
  ibcoll_team_t team = make(parent, {0, 1, 2, 3});
  expect_ok(ibcoll_barrier(team), "barrier");
  if (dies && moment == Moment::kAfterTheOthers) await([&] { return shared.freed == kDying; });
  if (dies) ::raise(SIGKILL);
  if (moment == Moment::kInATeam)
    expect_error(ibcoll_barrier(team), IBCOLL_ERR_PEER_FAILED, "rank 3", "barrier without the dead");
  expect_ok(ibcoll_team_free(team), "ibcoll_team_free");
  ++shared.freed;
  await_death(shared);
  expect_ok(ibcoll_barrier(survivors), "barrier of survivors");
}

int live_on(Moment moment, ForkedRank& self, Dying& shared) {
  ibcoll_context_t context = nullptr;
  const ibcoll_context_params_t params{sizeof params, &self.bootstrap};
  if (!expect_ok(ibcoll_context_create(&params, &context), "ibcoll_context_create")) return 1;
  const int living = survivors_of(moment);
  if (self.rank >= living) shared.pids[self.rank] = ::getpid();
  const ibcoll_team_t world = ibcoll_team_world(context);
  std::vector<int> rest(static_cast<size_t>(living));
  std::iota(rest.begin(), rest.end(), 0);
  ibcoll_team_t survivors = make(world, rest);
  expect_ok(ibcoll_barrier(world), "barrier");
  const uint64_t before = counter(context, "heap_reserved_bytes");
  expect(before > 0, "ibcoll_info_json does not show what is reserved");
  expect_ok(ibcoll_barrier(world), "barrier");
  ibcoll_team_t parent = make(world, {0, 1, 2, 3});
  lose_a_rank(context, moment, self.rank, parent, survivors, shared);
  expect_ok(ibcoll_team_free(parent), "ibcoll_team_free");
  expect_ok(ibcoll_barrier(survivors), "barrier of survivors");
  // A rank that left before the death looks once more.
  ibcoll_team_t another = make(survivors, rest);
  expect_ok(ibcoll_team_free(another), "ibcoll_team_free");
  expect_ok(ibcoll_barrier(survivors), "barrier of survivors");
  expect(counter(context, "heap_reserved_bytes") == before, "{} bytes of windows are left",
         counter(context, "heap_reserved_bytes") - before);
  expect_ok(ibcoll_barrier(survivors), "barrier of survivors");
  expect_ok(ibcoll_team_free(survivors), "ibcoll_team_free");
  (void)ibcoll_context_destroy(context);  // may say that a rank failed
  return complaints() > 0 ? 1 : 0;
}

class DeadWindows : public testing::TestWithParam<Moment> {};

TEST_P(DeadWindows, AreGivenBack) {
  ::setenv("IBCOLL_LOG", "error", 1);
  ::setenv("IBCOLL_TIMEOUT", "600", 1);
  SharedState<Dying> shared;
  const std::vector<Ending> endings =
      ForkJob(kJobRanks, 1).run([&](ForkedRank& self) { return live_on(GetParam(), self, *shared); }, 120);
  for (int rank = 0; rank < survivors_of(GetParam()); ++rank) {
    EXPECT_FALSE(endings[static_cast<size_t>(rank)].overdue) << "rank " << rank << " hangs";
    EXPECT_EQ(endings[static_cast<size_t>(rank)].code, 0) << "rank " << rank;
  }
}

const char* name_of(Moment moment) {
  constexpr const char* kNames[] = {"InATeam",        "AfterTheOthers",  "BeforeMaking",
                                    "MakingAsLeader", "MakingAsAnother", "LeaderAndAnother"};
  return kNames[static_cast<int>(moment)];
}

INSTANTIATE_TEST_SUITE_P(Of, DeadWindows,
                         testing::Values(Moment::kInATeam, Moment::kAfterTheOthers, Moment::kBeforeMaking,
                                         Moment::kMakingAsLeader, Moment::kMakingAsAnother, Moment::kLeaderAndAnother),
                         [](const auto& info) { return name_of(info.param); });

}  // namespace
}  // namespace ibcoll::multiprocess
