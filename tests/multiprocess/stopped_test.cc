// SPDX-License-Identifier: BSD-3-Clause
// A rank is stopped in the middle of a transfer, the others give up, and it goes on: what they got back with the error
// is theirs, and nobody writes to it any more.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>

#include "tests/multiprocess/checked_call.h"
#include "tests/multiprocess/fork_job.h"
#include "tests/multiprocess/scenario.h"

namespace ibcoll::multiprocess {
namespace {

constexpr double kTimeout = 1;  // IBCOLL_TIMEOUT in seconds
constexpr int kStopped = 1;

struct Shared {
  std::atomic<pid_t> pid{0};
  std::atomic<int> ready{0};  // ranks with their buffers filled, which may take one of them longer than kTimeout
  std::atomic<bool> in_the_middle{false};
};

struct Stop {
  int nodes;
  uint64_t bytes;
  double after;  // seconds, into the transfer
};

// The one that goes on.
void give_up_on_the_stopped_one(ibcoll_context_t context, CheckedCall& call, const Stop& stop, Shared& shared) {
  const ibcoll_collective_args_t args = call.args();
  ibcoll_request_t request = nullptr;
  if (!expect_ok(ibcoll_collective_init(ibcoll_team_world(context), &args, &request), "init")) return;
  expect_ok(ibcoll_start(request), "start");
  for (const double end = seconds_now() + stop.after; seconds_now() < end;) ibcoll_progress(context);
  ::kill(shared.pid, SIGSTOP);
  const double begin = seconds_now();
  ibcoll_status_t status = ibcoll_wait(request);
  if (status != IBCOLL_OK) shared.in_the_middle = true;
  if (status == IBCOLL_OK) {  // it was through
    ::kill(shared.pid, SIGCONT);
    std::_Exit(complaints() > 0 ? 1 : 0);
  }
  if (status == IBCOLL_ERR_BUFFERS_HELD) {  // in the middle of a copy of the kernel
    expect(stop.nodes == 1, "{}", ibcoll_last_error());
    expect(ibcoll_request_free(request) == IBCOLL_ERR_BUSY, "a request whose buffers are held was freed");
    ::kill(shared.pid, SIGCONT);
    for (const double end = seconds_now() + 10; status == IBCOLL_ERR_BUFFERS_HELD && seconds_now() < end;)
      status = ibcoll_wait(request);
  }
  expect_error(status, IBCOLL_ERR_TIMEOUT, "IBCOLL_TIMEOUT", "the wait for a stopped rank");
  expect(seconds_now() - begin < kTimeout + 20, "{:.1f} s until the wait gave up", seconds_now() - begin);
  expect_ok(ibcoll_request_free(request), "ibcoll_request_free");
  call.scribble();
  ::kill(shared.pid, SIGCONT);
  for (const double end = seconds_now() + 1; seconds_now() < end;) ibcoll_progress(context);
  expect(call.scribbled(), "memory was written after the wait had returned");
  const ibcoll_status_t left = ibcoll_context_destroy(context);
  expect(left != IBCOLL_ERR_BUSY, "ibcoll_context_destroy: {}", ibcoll_last_error());
  expect(call.scribbled(), "memory was written while the context ended");
}

int body(ForkedRank& self, const Stop& stop, Shared& shared) {
  if (self.rank == kStopped) shared.pid = ::getpid();
  ibcoll_context_t context = nullptr;
  const ibcoll_context_params_t params{sizeof params, &self.bootstrap};
  if (!expect_ok(ibcoll_context_create(&params, &context), "ibcoll_context_create")) return 1;
  CheckedCall call(ibcoll_team_world(context), {.collective = IBCOLL_ALLTOALL, .bytes = stop.bytes});
  call.fill(0);
  ++shared.ready;
  for (const double end = seconds_now() + 50; shared.ready < 2 && seconds_now() < end;) ::usleep(1000);
  if (self.rank == kStopped) {
    (void)call.call();
    return 0;
  }
  give_up_on_the_stopped_one(context, call, stop, shared);
  return complaints() > 0 ? 1 : 0;
}

class StoppedInATransfer : public testing::TestWithParam<int> {};

TEST_P(StoppedInATransfer, MemoryIsTheCallersAfterTheError) {
  const int nodes = GetParam();
  if (nodes > 1 && !ForkJob::can_emulate_nodes()) GTEST_SKIP() << "no host names of our own here";
  ::setenv("UCX_TLS", "tcp", 1);
  ::setenv("UCX_NET_DEVICES", "lo", 1);
  ::setenv("IBCOLL_TIMEOUT", fmt::format("{}", kTimeout).c_str(), 1);
  ::setenv("IBCOLL_LOG", "error", 1);
  void* const memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  bool any_in_the_middle = false;
  for (const double after : {0.002, 0.005, 0.02}) {
    auto* const shared = new (memory) Shared();
    const std::vector<Ending> endings = ForkJob(2, nodes).run(
        [&](ForkedRank& self) {
          return body(self, {nodes, 48'000'000, after}, *shared);
        },
        60);
    EXPECT_FALSE(endings[0].overdue) << after;
    EXPECT_TRUE(endings[0].exited) << after;
    EXPECT_EQ(endings[0].code, 0) << after;
    any_in_the_middle |= shared->in_the_middle;
  }
  EXPECT_TRUE(any_in_the_middle) << "every transfer was through before the rank was stopped";
  ::munmap(memory, sizeof(Shared));
}

INSTANTIATE_TEST_SUITE_P(Of, StoppedInATransfer, testing::Values(1, 2),
                         [](const testing::TestParamInfo<int>& info) { return fmt::format("{}nodes", info.param); });

}  // namespace
}  // namespace ibcoll::multiprocess
