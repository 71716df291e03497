// SPDX-License-Identifier: BSD-3-Clause
// The first messages between two ranks wait for a connection, and that for both. A rank that has completed its call
// leaves nothing pending until its next call.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>

#include "tests/multiprocess/checked_call.h"
#include "tests/multiprocess/fork_job.h"
#include "tests/multiprocess/scenario.h"
#include "tests/multiprocess/shared_state.h"

namespace ibcoll::multiprocess {
namespace {

constexpr double kInside = 0.05;  // seconds in which rank 0 comes as far as it comes alone

struct FirstCalls {
  std::atomic<bool> rank_0_calls{false};
  std::atomic<int> through{0};  // ranks that have returned from the bcast
};

int body(ForkedRank& self, FirstCalls& shared) {
  ibcoll_context_t context = nullptr;
  const ibcoll_context_params_t params{sizeof params, &self.bootstrap};
  if (!expect_ok(ibcoll_context_create(&params, &context), "ibcoll_context_create")) return 1;
  const ibcoll_team_t world = ibcoll_team_world(context);
  if (self.rank == 1) {
    await([&] { return shared.rank_0_calls.load(); });
    sleep_seconds(kInside);
  }
  CheckedCall call(world, {.collective = IBCOLL_BCAST, .bytes = 64});
  if (self.rank == 0) shared.rank_0_calls = true;
  call.run(0);
  ++shared.through;
  if (self.rank == 0)
    expect(await([&] { return shared.through == self.size; }), "a rank waits for another call of rank 0");
  expect_ok(ibcoll_barrier(world), "barrier");
  expect_ok(ibcoll_context_destroy(context), "ibcoll_context_destroy");
  return complaints() > 0 ? 1 : 0;
}

TEST(FirstCall, LeavesWithoutAnother) {
  if (!ForkJob::can_emulate_nodes()) GTEST_SKIP() << "no host names of our own here";
  ::setenv("UCX_TLS", "tcp", 1);
  ::setenv("UCX_NET_DEVICES", "lo", 1);
  ::setenv("IBCOLL_LOG", "error", 1);
  SharedState<FirstCalls> shared;
  for (const Ending& ending : ForkJob(4, 4).run([&](ForkedRank& self) { return body(self, *shared); }, 120)) {
    EXPECT_TRUE(ending.exited) << "signal " << ending.code;
    EXPECT_EQ(ending.code, 0);
  }
}

}  // namespace
}  // namespace ibcoll::multiprocess
