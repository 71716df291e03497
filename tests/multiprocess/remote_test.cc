// SPDX-License-Identifier: BSD-3-Clause
// The failures that only other machines show: ranks that die where no rank can watch their processes, hosts that fall
// silent, children that hold a dead rank's sockets. Each node of a job is a machine of its own (machines.h).
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "tests/multiprocess/checked_call.h"
#include "tests/multiprocess/fork_job.h"
#include "tests/multiprocess/scenario.h"
#include "tests/multiprocess/shared_state.h"

namespace ibcoll::multiprocess {
namespace {

constexpr int kRanks = 4;
constexpr int kVictim = 3;            // on the second machine
constexpr double kPeerTimeout = 1.5;  // IBCOLL_PEER_TIMEOUT in seconds
// Silence is found within kPeerTimeout and a second. A rank that does not know that time takes the default, 10 s.
constexpr double kFound = 9;
// A rank that leaves waits three seconds for peers that do not answer; one that waited for them would be overdue.
constexpr double kSoon = 60, kOverdue = 180;

class Remote : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = Machines::missing(); !why.empty()) GTEST_SKIP() << why;
    machines_.emplace(2);
    ::setenv("UCX_TLS", "tcp", 1);
    ::setenv("UCX_NET_DEVICES", "eth0", 1);
    ::setenv("IBCOLL_NET", "ucx", 1);
    ::setenv("IBCOLL_TIMEOUT", "600", 1);
    ::setenv("IBCOLL_PEER_TIMEOUT", fmt::format("{}", kPeerTimeout).c_str(), 1);
    ::setenv("IBCOLL_LOG", "error", 1);
  }
  // All ranks but `dead` must end with 0.
  void run(int ranks, const std::function<int(ForkedRank&)>& body, int dead = -1) {
    const std::vector<Ending> endings = ForkJob(ranks, 2, *machines_).run(body, kOverdue);
    for (int rank = 0; rank < ranks; ++rank) {
      if (rank == dead) continue;
      const Ending& ending = endings[static_cast<size_t>(rank)];
      EXPECT_FALSE(ending.overdue) << "rank " << rank << " hangs";
      EXPECT_TRUE(ending.exited) << "rank " << rank << " died of signal " << ending.code;
      EXPECT_EQ(ending.code, 0) << "rank " << rank;
    }
  }
  std::optional<Machines> machines_;
};

// Calls the collective until it fails, and then leaves; how long the last call took, and what it returned.
struct Failure {
  ibcoll_status_t status = IBCOLL_OK;
  double seconds = 0;
  std::string why;
};
Failure call_until_failure(ibcoll_context_t context, const CallParams& params) {
  CheckedCall call(ibcoll_team_world(context), params);
  Failure failure;
  for (uint64_t round = 0; failure.status == IBCOLL_OK; ++round) {
    call.fill(round);
    const double begin = seconds_now();
    failure.status = call.call();
    failure.seconds = seconds_now() - begin;
    if (failure.status == IBCOLL_OK) call.verify(round);
  }
  failure.why = ibcoll_last_error();
  call.scribble();
  const double begin = seconds_now();
  ibcoll_context_destroy(context);
  expect(seconds_now() - begin < kSoon, "{:.1f} s to leave the job", seconds_now() - begin);
  expect(call.scribbled(), "memory was written after the call had returned");
  expect(failure.status == IBCOLL_ERR_PEER_FAILED, "{}: {}", static_cast<int>(failure.status), failure.why);
  return failure;
}

ibcoll_context_t join(ForkedRank& self) {
  ibcoll_context_t context = nullptr;
  const ibcoll_context_params_t params{sizeof params, &self.bootstrap};
  expect_ok(ibcoll_context_create(&params, &context), "ibcoll_context_create");
  return context;
}

// The cable of the second machine is pulled while ranks talk, wait, or connect: each side finds the other silent.
struct Silence {
  const char* name;
  CallParams call;
  double after = 0.3;  // seconds
};
class SilentHost : public Remote, public testing::WithParamInterface<Silence> {};

TEST_P(SilentHost, IsFoundWithinThePeerTimeout) {
  const Silence& silence = GetParam();
  SharedState<std::atomic<bool>> pulled;
  run(kRanks, [&](ForkedRank& self) {
    const ibcoll_context_t context = join(self);
    if (context == nullptr) return 1;
    std::thread puller;
    if (self.rank == 0) {
      puller = std::thread([&] {
        sleep_seconds(silence.after);
        machines_->pull_cable(1);
        *pulled = true;
      });
    }
    if (silence.after == 0 && !expect(await([&] { return pulled->load(); }), "no cable is pulled")) return 1;
    const Failure failure = call_until_failure(context, silence.call);
    expect(failure.seconds < kFound, "{:.1f} s until the silence was noticed", failure.seconds);
    const std::string host = Machines::address(self.rank < kRanks / 2 ? 1 : 0);
    const auto says = [&](const std::string& what) { return failure.why.find(what) != std::string::npos; };
    expect(says(fmt::format("its host {} has not answered", host)) ||
               says(fmt::format("a connection to {} was not made", host)),  // it was just being opened
           "the silent host {} is not named: {}", host, failure.why);
    if (puller.joinable()) puller.join();
    return complaints() > 0 ? 1 : 0;
  });
}

INSTANTIATE_TEST_SUITE_P(Of, SilentHost,
                         testing::Values(Silence{"Barrier", {.collective = IBCOLL_BARRIER}},
                                         Silence{"SmallBlocks", {.collective = IBCOLL_ALLTOALL, .bytes = 64}},
                                         Silence{"LargeBlocks", {.collective = IBCOLL_ALLTOALL, .bytes = 4'000'000}},
                                         Silence{"FirstCall", {.collective = IBCOLL_ALLTOALL, .bytes = 64}, 0}),
                         [](const testing::TestParamInfo<Silence>& info) { return info.param.name; });

// A rank that is stopped, or computes, for longer than the timeout, while much is on its way to it: its kernel answers.
TEST_F(Remote, ABusyRankIsNotSilent) {
  run(kRanks, [&](ForkedRank& self) {
    const ibcoll_context_t context = join(self);
    if (context == nullptr) return 1;
    CheckedCall call(ibcoll_team_world(context), {.collective = IBCOLL_ALLTOALL, .bytes = 4'000'000});
    for (uint64_t round = 0; round < 2; ++round) {
      const ibcoll_collective_args_t args = call.args();
      ibcoll_request_t request = nullptr;
      if (!expect_ok(ibcoll_collective_init(ibcoll_team_world(context), &args, &request), "init")) return 1;
      call.fill(round);
      expect_ok(ibcoll_start(request), "start");
      for (int i = 0; i < 100 && self.rank == kVictim; ++i) ibcoll_progress(context);  // tells the others where to
      if (self.rank == kVictim) sleep_seconds(2.5 * kPeerTimeout);
      if (expect_ok(ibcoll_wait(request), "wait")) call.verify(round);
      expect_ok(ibcoll_request_free(request), "free");
    }
    expect_ok(ibcoll_context_destroy(context), "ibcoll_context_destroy");
    return complaints() > 0 ? 1 : 0;
  });
}

// A child that a rank forked, and a program that it started, live on when the rank dies; they must not hold its
// sockets.
enum class Child { kNone, kForked, kProgram };
class RemoteDeath : public Remote, public testing::WithParamInterface<Child> {};

constexpr int kLone = 1;  // it is alone on its machine: no rank there reports its death

TEST_P(RemoteDeath, IsFound) {
  ::setenv("IBCOLL_PEER_TIMEOUT", "300", 1);  // its kernel says that the connection has ended
  run(
      /*ranks=*/2,
      [&](ForkedRank& self) {
        const ibcoll_context_t context = join(self);
        if (context == nullptr) return 1;
        if (self.rank == kLone) {
          expect_ok(ibcoll_barrier(ibcoll_team_world(context)), "barrier");
          CheckedCall(ibcoll_team_world(context), {.collective = IBCOLL_ALLTOALL, .bytes = 64}).run(0);
          if (GetParam() == Child::kForked && ::fork() == 0) {
            sleep_seconds(60);
            ::_exit(0);
          }
          if (GetParam() == Child::kProgram && std::system("sleep 60 &") != 0) return 1;
          ::raise(SIGKILL);
        }
        if (ibcoll_barrier(ibcoll_team_world(context)) == IBCOLL_OK)
          CheckedCall(ibcoll_team_world(context), {.collective = IBCOLL_ALLTOALL, .bytes = 64}).run(0);
        const Failure failure = call_until_failure(context, {.collective = IBCOLL_ALLTOALL, .bytes = 64});
        expect(failure.seconds < kSoon, "{:.1f} s until the death was noticed", failure.seconds);
        return complaints() > 0 ? 1 : 0;
      },
      kLone);
}

std::string name_of(const testing::TestParamInfo<Child>& info) {
  constexpr const char* kNames[] = {"NoChild", "AForkedChild", "AProgramStarted"};
  return kNames[static_cast<int>(info.param)];
}

INSTANTIATE_TEST_SUITE_P(With, RemoteDeath, testing::Values(Child::kNone, Child::kForked, Child::kProgram), name_of);

}  // namespace
}  // namespace ibcoll::multiprocess
