// SPDX-License-Identifier: BSD-3-Clause
// [C9] and the last words of [C1]: ranks as processes, and SIGKILL.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>

#include "runtime/sim/network.h"
#include "tests/conformance/group.h"
#include "tests/conformance/processes.h"

namespace ibcoll::conformance {
namespace {

using namespace std::chrono_literals;

constexpr auto kDetection = 10s;  // "a few seconds", on a machine that has other things to do
constexpr auto kTimeout = 60s;

class DeathTest : public ::testing::TestWithParam<std::string> {
 protected:
  static void expect_ready(Processes& ranks) {
    for (int rank = 0; rank < ranks.size(); ++rank) ASSERT_TRUE(ranks.expect(rank, "ready", kTimeout));
  }

  // All survivors report the death, once and of no other rank, refuse calls to the dead, and still reach each other.
  static void expect_survival(Processes& ranks, int victim, bool talking) {
    const std::string dead = std::to_string(victim);
    for (int rank = 0; rank < ranks.size(); ++rank) {
      if (rank == victim) continue;
      ASSERT_TRUE(ranks.expect(rank, "lost " + dead, kDetection));
    }
    for (int rank = 0; rank < ranks.size(); ++rank) {
      if (rank == victim) continue;
      ranks.tell(rank, "refuses " + dead);
      ASSERT_TRUE(ranks.expect(rank, "yes", kTimeout));
      if (!talking) continue;
      ranks.tell(rank, "alive");
      ASSERT_TRUE(ranks.expect(rank, "yes", kTimeout));
    }
    end_all(ranks, victim);
  }

  static void end_all(Processes& ranks, int but) {
    for (const char* word : {"stop", "end"}) {
      for (int rank = 0; rank < ranks.size(); ++rank) {
        if (rank != but) ranks.tell(rank, word);
      }
      for (int rank = 0; rank < ranks.size() && word == std::string("stop"); ++rank) {
        if (rank == but) continue;
        ASSERT_TRUE(ranks.expect(rank, "stopped", kTimeout));
      }
    }
    for (int rank = 0; rank < ranks.size(); ++rank) {
      if (rank == but) continue;
      const int status = ranks.wait(rank, kTimeout);
      EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "rank " << rank << " ended with " << status;
    }
  }
};

TEST_P(DeathTest, InTheMiddleOfTraffic) {
  Processes ranks(GetParam(), 4, "chat");
  ASSERT_TRUE(ranks.started());
  expect_ready(ranks);
  ranks.kill(2);
  expect_survival(ranks, 2, true);
}

TEST_P(DeathTest, InTheMiddleOfLargePuts) {
  Processes ranks(GetParam(), 3, "puts");
  ASSERT_TRUE(ranks.started());
  expect_ready(ranks);
  ranks.kill(1);
  expect_survival(ranks, 1, true);
}

// The survivors have never sent anything to the rank that dies.
TEST_P(DeathTest, SeenByThoseWhoOnlyListen) {
  Processes ranks(GetParam(), 3, "listen");
  ASSERT_TRUE(ranks.started());
  expect_ready(ranks);
  ranks.kill(0);
  expect_survival(ranks, 0, false);
}

TEST_P(DeathTest, AnOrderlyEndLosesNothing) {
  Processes ranks(GetParam(), 4, "chat");
  ASSERT_TRUE(ranks.started());
  expect_ready(ranks);
  end_all(ranks, -1);
}

TEST_P(DeathTest, LastWordsArrive) {
  Processes ranks(GetParam(), 3, "farewell");
  ASSERT_TRUE(ranks.started());
  expect_ready(ranks);
  const int status = ranks.wait(0, kTimeout);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

// [C1] A rank that leaves while a peer takes nothing has sent all, or is lost.
TEST_P(DeathTest, ADeserterIsReported) {
  if (GetParam().starts_with("shm")) GTEST_SKIP() << "a put is written by the rank itself, before it leaves";
  Processes ranks(GetParam(), 2, "desertion");
  ASSERT_TRUE(ranks.started());
  EXPECT_NE(ranks.wait(0, kTimeout), -1);
  ranks.tell(1, "look");
  const std::optional<std::string> word = ranks.hear(1, kTimeout);
  ASSERT_TRUE(word) << "rank 1 still waits for what rank 0 sent last";
  EXPECT_TRUE(*word == "ready" || *word == "lost 0") << *word;
}

std::vector<std::string> transports() {
  std::vector<std::string> found{"shm", "shm_copy", "shm_no_pidfd", "shm_no_writev"};
#ifdef IBCOLL_TEST_UCX
  // Not over UCX's shared memory: all that send to a rank share one queue there, and one that is killed between
  // reserving its entry and filling it stops the queue for all others (UCX 1.13).
  found.push_back("ucx_tcp");
  if (machine_has_rdma()) found.push_back("ucx_rdma");
#endif
#ifdef IBCOLL_TEST_VERBS
  if (machine_has_rdma()) found.insert(found.end(), {"verbs_imm", "verbs_memory"});
  if (machine_has_rdmacm()) found.push_back("verbs_rdmacm");
#endif
  return found;
}

INSTANTIATE_TEST_SUITE_P(Transports, DeathTest, ::testing::ValuesIn(transports()),
                         [](const auto& info) { return info.param; });

// The same in the simulator, where time is virtual.
TEST(SimDeathTest, ReportedOnceAndRefused) {
  for (const sim::Detection detection : {sim::Detection::kByItself, sim::Detection::kWhenChecked}) {
    sim::Params params;
    params.ranks = 3;
    params.detection = detection;
    sim::Network network(params);
    for (int from = 0; from < 3; ++from) {
      for (int to = 0; to < 3; ++to) {
        if (from == to) continue;
        EXPECT_TRUE(network.transport(from).send(to, Note{}, {}));
      }
    }
    network.kill(2, network.now() + 100'000);
    network.advance_to(network.now() + 100'000'000);
    for (int rank = 0; rank < 2; ++rank) {
      sim::Transport& transport = network.transport(rank);
      transport.check_peers();
      int failures = 0;
      std::array<Event, 4> events;
      for (size_t count; (count = transport.poll(events)) > 0;) {
        for (size_t i = 0; i < count; ++i) {
          if (events[i].kind != Event::Kind::kPeerFailed) continue;
          ++failures;
          EXPECT_EQ(events[i].peer, 2);
          EXPECT_FALSE(events[i].payload.empty());
        }
        transport.check_peers();
      }
      EXPECT_EQ(failures, 1);
      EXPECT_FALSE(transport.send(2, Note{}, {}));
      EXPECT_EQ(transport.put(2, {0x1000, 8, 1}, {}, Note{}, 0), PutResult::kBusy);
      EXPECT_TRUE(transport.send(1 - rank, Note{}, {}));
    }
  }
}

}  // namespace
}  // namespace ibcoll::conformance
