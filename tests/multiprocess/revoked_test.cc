// SPDX-License-Identifier: BSD-3-Clause
// A rank revokes a team that others wait in, and may race a death there. What each rank knows of the dead.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <random>
#include <thread>

#include "tests/multiprocess/fork_job.h"
#include "tests/multiprocess/scenario.h"

namespace ibcoll::multiprocess {
namespace {

constexpr double kRevokedSoon = 60;  // a second, where the machine has nothing else to do

class Revoked : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (!ForkJob::can_emulate_nodes()) GTEST_SKIP() << "no host names of our own here";
    ::setenv("UCX_TLS", "tcp", 1);
    ::setenv("UCX_NET_DEVICES", "lo", 1);
    ::setenv("IBCOLL_TIMEOUT", "600", 1);
    ::setenv("IBCOLL_LOG", "error", 1);
  }

  // `victim`: whom a signal ends. The others run to their end.
  static void run(int ranks, int victim, const std::function<void(Rank&)>& body) {
    const auto joined = [&](ForkedRank& forked) {
      Rank self{nullptr, nullptr, forked.rank, forked.size};
      const ibcoll_context_params_t params{sizeof params, &forked.bootstrap};
      if (!expect_ok(ibcoll_context_create(&params, &self.context), "ibcoll_context_create")) return 1;
      self.world = ibcoll_team_world(self.context);
      body(self);
      (void)ibcoll_context_destroy(self.context);  // may say that a rank failed
      return complaints() > 0 ? 1 : 0;
    };
    const std::vector<Ending> endings = ForkJob(ranks, GetParam()).run(joined, 180);
    for (int rank = 0; rank < ranks; ++rank) {
      const Ending& ending = endings[static_cast<size_t>(rank)];
      if (rank == victim) continue;
      EXPECT_TRUE(ending.exited && ending.code == 0 && !ending.overdue) << "rank " << rank << ": " << ending.code;
    }
  }
};

std::vector<int> failed_ranks(ibcoll_team_t team, int room = 16) {
  std::vector<int> ranks(static_cast<size_t>(room), -1);
  int count = room;
  expect_ok(ibcoll_team_failed_ranks(team, ranks.data(), &count), "ibcoll_team_failed_ranks");
  expect(count <= room, "{} failed ranks", count);
  ranks.resize(static_cast<size_t>(std::max(count, 0)));
  return ranks;
}

// Rank 1 has seen what the others have not. Calls that wait for it, in this round or in an earlier one, end at once.
TEST_P(Revoked, EndsTheTeamOnAllRanksAndNoOtherTeam) {
  run(4, -1, [](Rank& self) {
    const TeamOwner team = split(self.world, 0, 3 - self.rank);
    const TeamOwner other = split(self.world, 0, self.rank);
    double mine = 1, sum = 0;
    const auto add = [&](ibcoll_team_t on) { return ibcoll_allreduce(on, &mine, &sum, 1, IBCOLL_DOUBLE, IBCOLL_SUM); };
    for (int round = 0; round < 20; ++round) expect_ok(add(team.get()), "allreduce");
    const double begin = seconds_now();
    if (self.rank == 1) {
      sleep_seconds(0.1);
      expect_ok(ibcoll_team_revoke(team.get()), "ibcoll_team_revoke");
      expect_ok(ibcoll_team_revoke(team.get()), "ibcoll_team_revoke, again");
    }
    for (int call = 0; call < 2; ++call)
      expect_error(add(team.get()), IBCOLL_ERR_REVOKED, "rank 2 revoked the team", "allreduce after revoke");
    expect(seconds_now() - begin < kRevokedSoon, "{:.1f} s until revoked", seconds_now() - begin);
    expect(failed_ranks(team.get()).empty(), "dead ranks in a job without deaths");
    expect_ok(ibcoll_team_revoke(team.get()), "ibcoll_team_revoke after another rank's");
    expect_ok(add(other.get()), "allreduce on a team that was not revoked");
    expect_ok(add(self.world), "allreduce on the world");
  });
}

// Each call ends with one of the two, and the death is known after it was named.
TEST_P(Revoked, RacesADeath) {
  for (unsigned seed = 1; seed <= 10 && !HasFailure(); ++seed) {
    run(4, 3, [seed](Rank& self) {
      std::mt19937 random(seed);
      const double of_death = 1e-6 * (random() % 20'000), of_revoke = 1e-6 * (random() % 20'000);
      double mine = 1, sum = 0;
      const auto add = [&] { return ibcoll_allreduce(self.world, &mine, &sum, 1, IBCOLL_DOUBLE, IBCOLL_SUM); };
      for (int round = 0; round < 20; ++round) expect_ok(add(), "allreduce");
      std::thread end;
      if (self.rank == 3) end = std::thread([=] { sleep_seconds(of_death), ::raise(SIGKILL); });
      const double begin = seconds_now();
      ibcoll_status_t status = IBCOLL_OK;
      while (status == IBCOLL_OK) {
        if (self.rank == 0 && seconds_now() - begin > of_revoke) (void)ibcoll_team_revoke(self.world);
        status = add();
      }
      if (end.joinable()) end.join();
      expect(status == IBCOLL_ERR_REVOKED || status == IBCOLL_ERR_PEER_FAILED, "{}: {}", ibcoll_status_string(status),
             ibcoll_last_error());
      const std::string text = ibcoll_last_error();
      const std::vector<int> failed = failed_ranks(self.world);  // others may have left meanwhile
      if (status == IBCOLL_ERR_PEER_FAILED)
        expect(!failed.empty() && failed.back() == 3, "{} ranks, and not rank 3, are dead after: {}", failed.size(),
               text);
      expect(seconds_now() - begin < kRevokedSoon, "{:.1f} s", seconds_now() - begin);
    });
  }
}

TEST_P(Revoked, TheDeadAreCountedEvenIfThereIsNoRoom) {
  run(4, 2, [](Rank& self) {
    const TeamOwner pair = split(self.world, self.rank % 2, -self.rank);  // 2, 0 and 3, 1
    expect_ok(ibcoll_barrier(self.world), "barrier");
    if (self.rank == 2) ::raise(SIGKILL);
    expect_status(ibcoll_barrier(self.world), IBCOLL_ERR_PEER_FAILED, "barrier");
    int none[] = {-1}, count = 0;
    expect_ok(ibcoll_team_failed_ranks(self.world, nullptr, &count), "ibcoll_team_failed_ranks without room");
    expect(count >= 1, "{} dead ranks", count);  // others may have left
    const std::vector<int> of_world = failed_ranks(self.world), of_pair = failed_ranks(pair.get());
    expect(std::count(of_world.begin(), of_world.end(), 2) == 1, "not rank 2 of the world");
    expect((std::count(of_pair.begin(), of_pair.end(), 0) == 1) == (self.rank == 0) || self.rank == 1,
           "not those of the pair");
    count = -1;
    expect_error(ibcoll_team_failed_ranks(self.world, none, &count), IBCOLL_ERR_INVALID_ARGUMENT, "room for -1", "-1");
    count = 1;
    expect_error(ibcoll_team_failed_ranks(self.world, nullptr, &count), IBCOLL_ERR_INVALID_ARGUMENT, "room", "NULL");
    expect_error(ibcoll_team_failed_ranks(self.world, none, nullptr), IBCOLL_ERR_INVALID_ARGUMENT, "NULL", "no count");
    expect_error(ibcoll_team_failed_ranks(nullptr, none, &count), IBCOLL_ERR_INVALID_ARGUMENT, "NULL", "no team");
    expect_error(ibcoll_team_revoke(nullptr), IBCOLL_ERR_INVALID_ARGUMENT, "NULL", "no team");
  });
}

// These ranks were forked: no launcher decides for them.
TEST_P(Revoked, CannotShrinkWithoutALauncher) {
  run(2, -1, [](Rank& self) {
    ibcoll_team_t shrunk = nullptr;
    expect_error(ibcoll_team_shrink(self.world, &shrunk), IBCOLL_ERR_UNSUPPORTED, "they met by callbacks", "shrink");
    uint64_t flags = 1;
    int count = 0;
    expect_error(ibcoll_team_agree(self.world, &flags, nullptr, &count), IBCOLL_ERR_UNSUPPORTED, "ibcoll_run", "agree");
    expect_ok(ibcoll_barrier(self.world), "barrier");
  });
}

INSTANTIATE_TEST_SUITE_P(Of, Revoked, testing::Values(1, 2, 4),
                         [](const testing::TestParamInfo<int>& info) { return fmt::format("{}nodes", info.param); });

}  // namespace
}  // namespace ibcoll::multiprocess
