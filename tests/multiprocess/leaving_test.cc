// SPDX-License-Identifier: BSD-3-Clause
// Ranks that leave the job open no connection. A rank dies while others leave it, or while they meet for the first
// time: an error is what they get, and they live.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/syscall.h>

#include <cstdio>
#include <cstdlib>
#include <random>
#include <thread>

#include "tests/conformance/refuse_system_call.h"
#include "tests/multiprocess/checked_call.h"
#include "tests/multiprocess/fork_job.h"
#include "tests/multiprocess/scenario.h"

namespace ibcoll::multiprocess {
namespace {

// kUnmet: while others leave a job in which no rank has called a collective.
enum class When { kLeaving, kUnmet, kFirstCalls };
const char* name_of(When when) {
  return when == When::kLeaving ? "Leaving" : when == When::kUnmet ? "Unmet" : "FirstCalls";
}

int die_in(When when, ForkedRank& self, unsigned seed) {
  std::mt19937 random(seed);
  const bool is_victim = static_cast<int>(random() % static_cast<unsigned>(self.size)) == self.rank;
  const double after = 1e-6 * (random() % (when == When::kFirstCalls ? 8'000 : 4'000));
  ibcoll_context_t context = nullptr;
  const ibcoll_context_params_t params{sizeof params, &self.bootstrap};
  if (!expect_ok(ibcoll_context_create(&params, &context), "ibcoll_context_create")) return 1;
  std::thread end;
  if (is_victim) {
    if (when == When::kLeaving) (void)ibcoll_barrier(ibcoll_team_world(context));
    end = std::thread([after] { sleep_seconds(after), ::raise(SIGKILL); });
  }
  ibcoll_status_t status =
      when == When::kLeaving && !is_victim ? ibcoll_barrier(ibcoll_team_world(context)) : IBCOLL_OK;
  for (uint64_t round = 0; when == When::kFirstCalls && status == IBCOLL_OK && (is_victim || round < 50); ++round) {
    CheckedCall call(ibcoll_team_world(context), {.collective = IBCOLL_ALLTOALL, .bytes = 100});
    call.fill(round);
    status = call.call();
  }
  if (status != IBCOLL_OK) expect(status == IBCOLL_ERR_PEER_FAILED, "{}", ibcoll_last_error());
  const double begin = seconds_now();
  (void)ibcoll_context_destroy(context);  // may say that a rank failed
  // Three seconds at most for peers that do not answer; without an end the wait lasts IBCOLL_TIMEOUT, 600 s.
  expect(seconds_now() - begin < 60, "{:.1f} s to leave", seconds_now() - begin);
  if (end.joinable()) end.join();
  return complaints() > 0 ? 1 : 0;
}

struct Case {
  When when;
  int nodes;
};
class DyingRank : public testing::TestWithParam<Case> {};

TEST_P(DyingRank, EndsNobodyElse) {
  const auto& [when, nodes] = GetParam();
  if (!ForkJob::can_emulate_nodes()) GTEST_SKIP() << "no host names of our own here";
  ::setenv("UCX_TLS", "tcp", 1);
  ::setenv("UCX_NET_DEVICES", "lo", 1);
  ::setenv("IBCOLL_TIMEOUT", "600", 1);
  ::setenv("IBCOLL_LOG", "error", 1);
  const char* const number = std::getenv("IBCOLL_TEST_SEEDS");
  const unsigned last = number ? static_cast<unsigned>(std::atoi(number)) : 30;
  testing::internal::CaptureStderr();  // the ranks' too
  for (unsigned seed = 1; seed <= last && !HasFailure(); ++seed) {
    const std::vector<Ending> endings =
        ForkJob(4, nodes).run([&](ForkedRank& self) { return die_in(when, self, seed); }, 120);
    int killed = 0;
    for (const Ending& ending : endings) {
      EXPECT_FALSE(ending.overdue) << "seed " << seed;
      if (!ending.exited && ending.code == SIGKILL)
        ++killed;
      else
        EXPECT_TRUE(ending.exited && ending.code == 0) << "code " << ending.code << ", seed " << seed;
    }
    EXPECT_LE(killed, 1);
  }
  const std::string lines = testing::internal::GetCapturedStderr();
  EXPECT_EQ(lines.find("UCX"), std::string::npos) << "UCX speaks: " << lines;
  if (HasFailure()) std::fputs(lines.c_str(), stderr);
}

INSTANTIATE_TEST_SUITE_P(Of, DyingRank,
                         testing::Values(Case{When::kLeaving, 2}, Case{When::kLeaving, 4}, Case{When::kUnmet, 4},
                                         Case{When::kFirstCalls, 4}),
                         [](const testing::TestParamInfo<Case>& info) {
                           return fmt::format("{}_{}nodes", name_of(info.param.when), info.param.nodes);
                         });

// No connection can be made any more, and no rank notices. Only ranks that have met the dead one learn of the death.
int leave_unconnected(ForkedRank& self, bool one_dies) {
  ibcoll_context_t context = nullptr;
  const ibcoll_context_params_t params{sizeof params, &self.bootstrap};
  if (!expect_ok(ibcoll_context_create(&params, &context), "ibcoll_context_create")) return 1;
  conformance::refuse_system_call(SYS_connect);
  if (one_dies && self.rank == 0) ::raise(SIGKILL);
  const ibcoll_status_t left = ibcoll_context_destroy(context);
  if (!one_dies || left != IBCOLL_ERR_PEER_FAILED) expect_ok(left, "ibcoll_context_destroy");
  return complaints() > 0 ? 1 : 0;
}

struct Layout {
  int ranks;
  int nodes;
  bool one_dies = false;
};
class UnmetRanks : public testing::TestWithParam<Layout> {};

TEST_P(UnmetRanks, LeaveWithoutAConnection) {
  const auto& [ranks, nodes, one_dies] = GetParam();
  if (!ForkJob::can_emulate_nodes()) GTEST_SKIP() << "no host names of our own here";
  ::setenv("UCX_TLS", "tcp", 1);
  ::setenv("UCX_NET_DEVICES", "lo", 1);
  ::setenv("IBCOLL_LOG", one_dies ? "info" : "error", 1);  // tells whom a rank loses
  testing::internal::CaptureStderr();                      // the ranks' too
  const std::vector<Ending> endings =
      ForkJob(ranks, nodes).run([dies = one_dies](ForkedRank& self) { return leave_unconnected(self, dies); }, 60);
  for (size_t rank = one_dies ? 1 : 0; rank < endings.size(); ++rank) {
    EXPECT_TRUE(endings[rank].exited) << "signal " << endings[rank].code;
    EXPECT_EQ(endings[rank].code, 0);
  }
  const std::string lines = testing::internal::GetCapturedStderr();
  EXPECT_EQ(lines.find("UCX  "), std::string::npos) << "UCX speaks: " << lines;
  constexpr std::string_view kLost = "lost rank ";
  for (size_t at = lines.find(kLost); at != std::string::npos; at = lines.find(kLost, at + 1))
    EXPECT_EQ(lines.compare(at + kLost.size(), 2, "0:"), 0) << lines.substr(at, 60);
  if (HasFailure()) std::fputs(lines.c_str(), stderr);
}

INSTANTIATE_TEST_SUITE_P(Of, UnmetRanks,
                         testing::Values(Layout{5, 5}, Layout{6, 2}, Layout{7, 5}, Layout{16, 4}, Layout{8, 8, true}),
                         [](const testing::TestParamInfo<Layout>& info) {
                           return fmt::format("{}ranks_{}nodes{}", info.param.ranks, info.param.nodes,
                                              info.param.one_dies ? "_one_dies" : "");
                         });

}  // namespace
}  // namespace ibcoll::multiprocess
