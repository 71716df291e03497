// SPDX-License-Identifier: BSD-3-Clause
// Few descriptors: the soft limit is raised; where the hard limit forbids that, no rank joins, and the error says why.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdlib>

#include "tests/multiprocess/checked_call.h"
#include "tests/multiprocess/fork_job.h"
#include "tests/multiprocess/scenario.h"

namespace ibcoll::multiprocess {
namespace {

std::vector<Ending> join_with(rlim_t soft, rlim_t hard, ibcoll_status_t wanted) {
  ::setenv("UCX_TLS", "tcp", 1);
  ::setenv("UCX_NET_DEVICES", "lo", 1);
  ::setenv("IBCOLL_LOG", "error", 1);
  const auto body = [=](ForkedRank& self) {
    const rlimit limit{soft, hard};
    if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) return 2;
    ibcoll_context_t context = nullptr;
    const ibcoll_context_params_t params{sizeof params, &self.bootstrap};
    const ibcoll_status_t status = ibcoll_context_create(&params, &context);
    if (wanted != IBCOLL_OK)
      expect_error(status, wanted, "ulimit -Hn", "ibcoll_context_create");
    else if (expect_ok(status, "ibcoll_context_create")) {
      CheckedCall(ibcoll_team_world(context), {.collective = IBCOLL_ALLTOALL, .bytes = 100}).run(0);
      expect_ok(ibcoll_context_destroy(context), "ibcoll_context_destroy");
    }
    return complaints() > 0 ? 1 : 0;
  };
  return ForkJob(4, 4).run(body, 60);
}

TEST(Descriptors, TheSoftLimitIsRaised) {
  if (!ForkJob::can_emulate_nodes()) GTEST_SKIP() << "no host names of our own here";
  for (const rlim_t soft : {11, 14, 20}) {
    for (const Ending& ending : join_with(soft, 200, IBCOLL_OK)) {
      EXPECT_TRUE(ending.exited) << soft << ": signal " << ending.code;
      EXPECT_EQ(ending.code, 0) << soft;
    }
  }
}

TEST(Descriptors, TheHardLimitIsNamed) {
  if (!ForkJob::can_emulate_nodes()) GTEST_SKIP() << "no host names of our own here";
  for (const Ending& ending : join_with(20, 20, IBCOLL_ERR_SYSTEM)) {
    EXPECT_TRUE(ending.exited) << "signal " << ending.code;
    EXPECT_EQ(ending.code, 0);
  }
}

}  // namespace
}  // namespace ibcoll::multiprocess
