// SPDX-License-Identifier: BSD-3-Clause
// The first messages between two ranks wait for a connection, and that for both. Who is through with its call leaves
// nothing behind that waits for its next one.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/multiprocess/checked_call.h"
#include "tests/multiprocess/fork_job.h"
#include "tests/multiprocess/scenario.h"

namespace ibcoll::multiprocess {
namespace {

constexpr double kLate = 0.2, kAway = 2;  // seconds

int body(ForkedRank& self) {
  ibcoll_context_t context = nullptr;
  const ibcoll_context_params_t params{sizeof params, &self.bootstrap};
  if (!expect_ok(ibcoll_context_create(&params, &context), "ibcoll_context_create")) return 1;
  const ibcoll_team_t world = ibcoll_team_world(context);
  if (self.rank == 1) sleep_seconds(kLate);
  CheckedCall call(world, {.collective = IBCOLL_BCAST, .bytes = 64});
  const double begin = seconds_now();
  call.run(0);
  const double took = seconds_now() - begin;
  expect(took < kAway / 2, "{:.2f} s for a first bcast", took);
  if (self.rank == 0) sleep_seconds(kAway);  // computes
  expect_ok(ibcoll_barrier(world), "barrier");
  expect_ok(ibcoll_context_destroy(context), "ibcoll_context_destroy");
  return complaints() > 0 ? 1 : 0;
}

TEST(FirstCall, LeavesWithoutAnother) {
  if (!ForkJob::can_emulate_nodes()) GTEST_SKIP() << "no host names of our own here";
  ::setenv("UCX_TLS", "tcp", 1);
  ::setenv("UCX_NET_DEVICES", "lo", 1);
  ::setenv("IBCOLL_LOG", "error", 1);
  for (const Ending& ending : ForkJob(4, 4).run(body, 60)) {
    EXPECT_TRUE(ending.exited) << "signal " << ending.code;
    EXPECT_EQ(ending.code, 0);
  }
}

}  // namespace
}  // namespace ibcoll::multiprocess
