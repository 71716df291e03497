// SPDX-License-Identifier: BSD-3-Clause
// A rank dies, or stops for good, in the middle of a collective, and no launcher ends the others: each must find out
// by itself, name the rank, and do so in bounded time. On one node, and between nodes over UCX on TCP.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <memory>
#include <thread>

#include "tests/multiprocess/checked_call.h"
#include "tests/multiprocess/fork_job.h"
#include "tests/multiprocess/random_program.h"
#include "tests/multiprocess/scenario.h"

namespace ibcoll::multiprocess {
namespace {

// For what takes three seconds at most where the machine has nothing else to do. Who does not notice a death waits for
// IBCOLL_TIMEOUT, 600 s, and is killed after kOverdue.
constexpr double kSoon = 60, kOverdue = 180;
constexpr int kVictim = 2;
constexpr int kTooShort = 77;  // IBCOLL_TIMEOUT was over before the rank had joined

// Runs the job with a short IBCOLL_TIMEOUT that must pass, and with a longer one where ranks cannot join in that.
std::vector<Ending> run_with_timeout(double seconds, int ranks, int nodes,
                                     const std::function<int(ForkedRank&)>& body) {
  for (;; seconds *= 2) {
    ::setenv("IBCOLL_TIMEOUT", fmt::format("{}", seconds).c_str(), 1);
    std::vector<Ending> endings = ForkJob(ranks, nodes).run(body, kOverdue);
    const auto too_short = [](const Ending& ending) { return ending.exited && ending.code == kTooShort; };
    if (seconds > 20 || std::none_of(endings.begin(), endings.end(), too_short)) return endings;
  }
}

enum class How { kKilled, kExits, kStops };
enum class Loop { kWaits, kPolls, kWaitsBriefly };

struct Death {
  ibcoll_collective_t collective;
  uint64_t bytes;
  int nodes;
  How how = How::kKilled;
  Loop loop = Loop::kWaits;  // the host program's

  std::string name() const {
    constexpr const char* kHow[] = {"Killed", "Exits", "Stops"};
    constexpr const char* kLoop[] = {"", "_Polling", "_WaitingBriefly"};
    return fmt::format("{}_{}_{}nodes_{}{}", ibcoll_collective_name(collective), bytes, nodes,
                       kHow[static_cast<int>(how)], kLoop[static_cast<int>(loop)]);
  }
};

// Runs the request once more; the error, if it comes.
ibcoll_status_t once(ibcoll_request_t request, Loop loop) {
  ibcoll_status_t status = ibcoll_start(request);
  if (status != IBCOLL_OK) return status;
  switch (loop) {
    case Loop::kWaits:
      return ibcoll_wait(request);
    case Loop::kPolls:
      while ((status = ibcoll_test(request)) == IBCOLL_IN_PROGRESS) sleep_seconds(0.001);
      return status;
    case Loop::kWaitsBriefly:
      while ((status = ibcoll_wait_timeout(request, 0)) == IBCOLL_ERR_TIMEOUT) {
      }
      return status;
  }
  return IBCOLL_ERR_INTERNAL;
}

void meet_the_end(How how) {
  if (how == How::kExits) ::_exit(0);
  ::raise(how == How::kKilled ? SIGKILL : SIGSTOP);
}

void check_survivor(const Death& death, ibcoll_status_t status, double took) {
  if (death.how == How::kStops) {
    expect_error(status, IBCOLL_ERR_TIMEOUT, "IBCOLL_TIMEOUT", death.name());
  } else {
    expect_error(status, IBCOLL_ERR_PEER_FAILED, fmt::format("rank {}", kVictim), death.name());
  }
  expect(took < kSoon, "{:.1f} s until the death was noticed", took);
}

constexpr int kRoundsBefore = 5;

// One rank of the job: the collective again and again, until the victim is gone.
int loop_until_failure(ForkedRank& self, const Death& death) {
  ibcoll_context_t context = nullptr;
  const ibcoll_context_params_t params{sizeof params, &self.bootstrap};
  const ibcoll_status_t joined = ibcoll_context_create(&params, &context);
  if (joined != IBCOLL_OK && death.how == How::kStops) return kTooShort;
  if (!expect_ok(joined, "ibcoll_context_create")) return 1;
  const ibcoll_team_t world = ibcoll_team_world(context);
  CheckedCall call(world, {.collective = death.collective, .bytes = death.bytes});
  const ibcoll_collective_args_t args = call.args();
  ibcoll_request_t request = nullptr;
  if (!expect_ok(ibcoll_collective_init(world, &args, &request), "init")) return 1;
  std::thread end;
  std::atomic<int> rounds{0};
  if (self.rank == kVictim)
    end = std::thread([&] {  // all are connected
      while (rounds < kRoundsBefore) sleep_seconds(0.001);
      meet_the_end(death.how);
    });
  ibcoll_status_t status = IBCOLL_OK;
  double begin = 0;
  for (uint64_t round = 0; status == IBCOLL_OK; ++round) {
    call.fill(round);
    begin = seconds_now();
    status = once(request, death.loop);
    if (status == IBCOLL_OK) call.verify(round);
    ++rounds;
  }
  check_survivor(death, status, seconds_now() - begin);
  expect(ibcoll_start(request) == status, "the team accepts collectives after its failure");
  call.verify_guards();
  call.scribble();
  expect_ok(ibcoll_request_free(request), "ibcoll_request_free");
  begin = seconds_now();
  ibcoll_context_destroy(context);  // may say that the exchange failed
  expect(seconds_now() - begin < kSoon, "{:.1f} s to leave the job", seconds_now() - begin);
  expect(call.scribbled(), "memory was written after the call had returned");
  return complaints() > 0 ? 1 : 0;
}

class Deaths : public testing::TestWithParam<Death> {
 protected:
  void SetUp() override {
    if (GetParam().nodes > 1 && !ForkJob::can_emulate_nodes()) GTEST_SKIP() << "no host names of our own here";
    ::setenv("UCX_TLS", "tcp", 1);
    ::setenv("UCX_NET_DEVICES", "lo", 1);
    ::setenv("IBCOLL_LOG", "error", 1);
  }
};

TEST_P(Deaths, AreNamedByEverySurvivor) {
  const Death& death = GetParam();
  constexpr int kRanks = 4;
  const std::vector<Ending> endings =
      run_with_timeout(death.how == How::kStops ? 0.5 : 600, kRanks, death.nodes,
                       [&](ForkedRank& self) { return loop_until_failure(self, death); });
  for (int rank = 0; rank < kRanks; ++rank) {
    const Ending& ending = endings[static_cast<size_t>(rank)];
    if (rank == kVictim) continue;
    EXPECT_FALSE(ending.overdue) << "rank " << rank << " hangs";
    EXPECT_TRUE(ending.exited) << "rank " << rank << " died of signal " << ending.code;
    EXPECT_EQ(ending.code, 0) << "rank " << rank;
  }
}

std::vector<Death> deaths() {
  std::vector<Death> all;
  for (const int nodes : {1, 2, 4})
    for (const ibcoll_collective_t collective :
         {IBCOLL_BARRIER, IBCOLL_BCAST, IBCOLL_ALLGATHER, IBCOLL_ALLTOALL, IBCOLL_ALLREDUCE})
      if (nodes < 4 || collective == IBCOLL_ALLTOALL)
        all.push_back({collective, collective == IBCOLL_BARRIER ? 0u : 30'000u, nodes});
  // In these a rank need not hear of the victim in its own part.
  for (int i = IBCOLL_GATHER; i < kCollectives; ++i)
    all.push_back({static_cast<ibcoll_collective_t>(i), 30'000, 1 + i % 2});
  for (const int nodes : {1, 2}) {
    all.push_back({IBCOLL_ALLTOALL, 100, nodes});
    all.push_back({IBCOLL_ALLTOALLV, 300'000, nodes});
    all.push_back({IBCOLL_ALLTOALL, 1000, nodes, How::kExits});
    all.push_back({IBCOLL_ALLGATHERV, 30'000, nodes, How::kKilled, Loop::kPolls});
    all.push_back({IBCOLL_ALLTOALL, 1000, nodes, How::kKilled, Loop::kWaitsBriefly});
    all.push_back({IBCOLL_ALLREDUCE, 1000, nodes, How::kStops});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Of, Deaths, testing::ValuesIn(deaths()),
                         [](const testing::TestParamInfo<Death>& info) { return info.param.name(); });

// UCX 1.13 aborts the process when a peer dies while the two connect to each other (docs/design/0004-transports.md).
bool connect_all(ibcoll_team_t world) {
  PersistentCall call(world, {.collective = IBCOLL_ALLTOALL, .bytes = 8, .algorithm = "direct"});
  for (uint64_t round = 0; round < 3; ++round)
    if (!call.start(round) || !call.wait(round)) return false;
  return true;
}

// In the middle of anything: several requests in flight on several teams, a split, the end of a team.
int run_until_a_rank_dies(ForkedRank& forked, uint64_t seed) {
  ibcoll_context_t context = nullptr;
  const ibcoll_context_params_t params{sizeof params, &forked.bootstrap};
  if (!expect_ok(ibcoll_context_create(&params, &context), "ibcoll_context_create")) return 1;
  const Rank self{context, ibcoll_team_world(context), forked.rank, forked.size};
  if (!connect_all(self.world)) return 1;
  tolerate_deaths();
  ibcoll_barrier(self.world);  // until all ranks do, for the first one to come may die at once
  std::mt19937_64 random(seed);
  const bool is_victim = static_cast<int>(random() % static_cast<uint64_t>(self.size)) == self.rank;
  const double seconds = 1e-6 * static_cast<double>(random() % 60'000);
  std::thread end;
  if (is_victim) end = std::thread([=] { sleep_seconds(seconds), ::raise(SIGKILL); });
  std::vector<std::unique_ptr<RandomProgram>> programs;
  while (deaths_noticed() == 0 && complaints() == 0) {
    programs.clear();
    programs.push_back(std::make_unique<RandomProgram>(self, ++seed * 1'000'000));
    programs.back()->run();
  }
  programs.back()->give_up();
  ibcoll_context_destroy(context);  // may say that the exchange failed
  expect(programs.back()->untouched(), "memory was written after the call had returned");
  return complaints() > 0 ? 1 : 0;
}

class RandomDeaths : public testing::TestWithParam<int> {};

TEST_P(RandomDeaths, EndTheOthersWithAnError) {
  const int nodes = GetParam();
  if (nodes > 1 && !ForkJob::can_emulate_nodes()) GTEST_SKIP() << "no host names of our own here";
  ::setenv("UCX_TLS", "tcp", 1);
  ::setenv("UCX_NET_DEVICES", "lo", 1);
  ::setenv("IBCOLL_TIMEOUT", "600", 1);
  ::setenv("IBCOLL_LOG", "error", 1);
  const char* const only = std::getenv("IBCOLL_TEST_SEED");
  const char* const number = std::getenv("IBCOLL_TEST_SEEDS");
  const uint64_t first = only ? std::strtoull(only, nullptr, 0) : 1;
  const uint64_t last = only ? first : number ? std::strtoull(number, nullptr, 0) : 8;
  for (uint64_t seed = first; seed <= last && !HasFailure(); ++seed) {
    const std::vector<Ending> endings =
        ForkJob(4, nodes).run([&](ForkedRank& self) { return run_until_a_rank_dies(self, seed); }, kOverdue);
    int killed = 0;
    for (const Ending& ending : endings) {
      EXPECT_FALSE(ending.overdue) << "a rank hangs: IBCOLL_TEST_SEED=" << seed;
      if (!ending.exited && ending.code == SIGKILL && !ending.overdue)
        ++killed;
      else
        EXPECT_TRUE(ending.exited && ending.code == 0) << "code " << ending.code << ": IBCOLL_TEST_SEED=" << seed;
    }
    EXPECT_LE(killed, 1);
  }
}

INSTANTIATE_TEST_SUITE_P(Of, RandomDeaths, testing::Values(1, 2, 4),
                         [](const testing::TestParamInfo<int>& info) { return fmt::format("{}nodes", info.param); });

// Before the job exists: the exchange fails, and with it the joining of every rank.
TEST(Joining, EndsWhenARankDoesNotCome) {
  const std::vector<Ending> endings = ForkJob(3, 1).run(
      [](ForkedRank& self) {
        if (self.rank == 1) return 5;
        ibcoll_context_t context = nullptr;
        const ibcoll_context_params_t params{sizeof params, &self.bootstrap};
        expect_error(ibcoll_context_create(&params, &context), IBCOLL_ERR_BOOTSTRAP, "allgather",
                     "ibcoll_context_create");
        return 0;
      },
      kOverdue);
  EXPECT_EQ(endings[0].code, 0);
  EXPECT_EQ(endings[1].code, 5);
  EXPECT_EQ(endings[2].code, 0);
}

// The cause of a death stays a suspicion for longer than the shortest IBCOLL_TIMEOUT: no call returns before it is
// known.
TEST(Joined, AreToldOnceThereIsNoDoubt) {
  ::setenv("IBCOLL_LOG", "error", 1);
  const std::vector<Ending> endings = run_with_timeout(0.1, 4, 1, [](ForkedRank& self) {
    ibcoll_context_t context = nullptr;
    const ibcoll_context_params_t params{sizeof params, &self.bootstrap};
    if (ibcoll_context_create(&params, &context) != IBCOLL_OK) return kTooShort;
    const ibcoll_team_t world = ibcoll_team_world(context);
    std::vector<int> one(4), another(4);
    ibcoll_status_t status = IBCOLL_OK;
    while (status == IBCOLL_OK) {
      if (self.rank == kVictim) ::raise(SIGKILL);
      status = ibcoll_allgather(world, &self.rank, one.data(), sizeof(int));
    }
    // TIMEOUT where the machine is so busy that no rank looked for a death in time.
    if (status != IBCOLL_ERR_TIMEOUT)
      expect_error(status, IBCOLL_ERR_PEER_FAILED, fmt::format("rank {}", kVictim), "allgather");
    expect(std::string_view(ibcoll_last_error()).find("still in flight") == std::string_view::npos,
           "a call returned before it had ended: {}", ibcoll_last_error());
    expect(ibcoll_allgather(world, &self.rank, another.data(), sizeof(int)) == status, "the next call: {}",
           ibcoll_last_error());
    ibcoll_context_destroy(context);
    return complaints() > 0 ? 1 : 0;
  });
  for (const int rank : {0, 1, 3}) EXPECT_TRUE(endings[static_cast<size_t>(rank)].exited);
  for (const int rank : {0, 1, 3}) EXPECT_EQ(endings[static_cast<size_t>(rank)].code, 0) << "rank " << rank;
}

// Both roots are through with their bcast at once, and what they sent may come to a rank that has met all others in
// leaving by then. No rank may enter the exchange: ranks that know of the failure do not take part in it.
TEST(Leaving, TellsEveryRankThatTheLastCallsDidNotFitTogether) {
  const auto body = [](ForkedRank& self) {
    ibcoll_context_t context = nullptr;
    const ibcoll_context_params_t params{sizeof params, &self.bootstrap};
    if (!expect_ok(ibcoll_context_create(&params, &context), "ibcoll_context_create")) return 1;
    {
      CheckedCall call(ibcoll_team_world(context), {.collective = IBCOLL_BCAST,
                                                    .bytes = 16,
                                                    .root = self.rank == self.size - 1 ? self.rank : 0,
                                                    .algorithm = "binomial"});
      const ibcoll_collective_args_t args = call.args();
      ibcoll_request_t request = nullptr;
      ibcoll_status_t status = ibcoll_collective_init(ibcoll_team_world(context), &args, &request);
      if (status == IBCOLL_OK) status = ibcoll_start(request);  // a late rank may know of it already
      if (status == IBCOLL_OK) status = ibcoll_wait(request);
      if (status != IBCOLL_OK) expect_error(status, IBCOLL_ERR_MISMATCH, "rank ", "the last call");
      expect_ok(ibcoll_request_free(request), "ibcoll_request_free");
      const ibcoll_status_t left = ibcoll_context_destroy(context);
      if (status == IBCOLL_OK) expect_error(left, IBCOLL_ERR_MISMATCH, "rank ", "leaving after calls that differ");
      if (status != IBCOLL_OK) expect_ok(left, "leaving after a failure that was reported");
    }
    return complaints() > 0 ? 1 : 0;
  };
  ::setenv("UCX_TLS", "tcp", 1);
  ::setenv("UCX_NET_DEVICES", "lo", 1);
  ::setenv("IBCOLL_LOG", "error", 1);
  ::setenv("IBCOLL_TIMEOUT", "600", 1);
  for (int round = 0; round < 10; ++round) {
    for (const auto& [ranks, nodes] : {std::pair(2, 1), std::pair(4, 1), std::pair(4, 2), std::pair(4, 4)}) {
      if (nodes > 1 && !ForkJob::can_emulate_nodes()) continue;
      const std::vector<Ending> endings = ForkJob(ranks, nodes).run(body, kOverdue);
      for (int rank = 0; rank < ranks; ++rank) {
        EXPECT_FALSE(endings[static_cast<size_t>(rank)].overdue) << ranks << "x" << nodes << ", rank " << rank;
        EXPECT_EQ(endings[static_cast<size_t>(rank)].code, 0) << ranks << "x" << nodes << ", rank " << rank;
      }
    }
  }
}

// A death concerns the teams that the rank was in; the others work on.
TEST(Teams, WithoutTheDeadRankWorkOn) {
  const auto body = [](ForkedRank& self) {
    ibcoll_context_t context = nullptr;
    const ibcoll_context_params_t params{sizeof params, &self.bootstrap};
    if (!expect_ok(ibcoll_context_create(&params, &context), "ibcoll_context_create")) return 1;
    const ibcoll_team_t world = ibcoll_team_world(context);
    {
      const TeamOwner survivors = split(world, self.rank == kVictim ? -1 : 0, -self.rank);
      const TeamOwner turned = split(world, 0, -self.rank);
      // A rank that dies right after a barrier may not have sent what the others need to leave it: they fail there.
      if (const ibcoll_status_t status = ibcoll_barrier(world); status != IBCOLL_OK)
        expect_error(status, IBCOLL_ERR_PEER_FAILED, fmt::format("rank {}", kVictim), "first barrier");
      if (self.rank == kVictim) ::raise(SIGKILL);
      expect_error(ibcoll_barrier(world), IBCOLL_ERR_PEER_FAILED, fmt::format("rank {}", kVictim), "second barrier");
      expect_error(ibcoll_barrier(turned.get()), IBCOLL_ERR_PEER_FAILED,
                   fmt::format("rank {} of the job (rank {} of the team)", kVictim, self.size - 1 - kVictim),
                   "barrier of a team in another order");
      for (const CallParams& params : every_collective(20'000, ibcoll_team_size(survivors.get())))
        for (uint64_t round = 0; round < 5; ++round) CheckedCall(survivors.get(), params).run(round);
      // After a failure ranks leave at once, and seem dead to those that are still in a call.
      expect_ok(ibcoll_barrier(survivors.get()), "last barrier");
    }
    ibcoll_context_destroy(context);
    return 0;
  };
  for (const int nodes : {1, 2}) {
    if (nodes > 1 && !ForkJob::can_emulate_nodes()) continue;
    ::setenv("UCX_TLS", "tcp", 1);
    ::setenv("UCX_NET_DEVICES", "lo", 1);
    ::setenv("IBCOLL_LOG", "error", 1);
    const std::vector<Ending> endings = ForkJob(4, nodes).run(body, kOverdue);
    for (const int rank : {0, 1, 3}) {
      EXPECT_TRUE(endings[static_cast<size_t>(rank)].exited) << nodes << " nodes, rank " << rank;
      EXPECT_EQ(endings[static_cast<size_t>(rank)].code, 0) << nodes << " nodes, rank " << rank;
    }
  }
}

}  // namespace
}  // namespace ibcoll::multiprocess
