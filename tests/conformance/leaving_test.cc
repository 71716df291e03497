// SPDX-License-Identifier: BSD-3-Clause
// A rank that leaves tells the peers that it has talked to, and no others: it opens no connection.
#include <algorithm>

#include "runtime/base/json.h"
#include "tests/conformance/world.h"

namespace ibcoll::conformance {
namespace {

using LeavingTest = TransportTest;

// Transports whose ranks are connected, each by its own.
std::vector<Maker> networks() {
  std::vector<Maker> found = makers();
  std::erase_if(
      found, [](const Maker& maker) { return maker.name.rfind("ucx", 0) != 0 && maker.name.rfind("verbs", 0) != 0; });
  return found;
}

TEST_P(LeavingTest, OpensNoConnection) {
  auto world = make_world(4);
  ASSERT_TRUE(world);
  for (const auto& [from, to] : {std::pair{0, 1}, {1, 0}, {2, 3}, {3, 2}})
    ASSERT_TRUE(world->send(from, to, Note{}, {}));
  ASSERT_TRUE(world->pump_until([&] {
    return world->messages(0, 1) + world->messages(1, 0) + world->messages(2, 3) + world->messages(3, 2) == 4;
  }));
  for (int leaver = 0; leaver < 3; ++leaver) {
    ASSERT_TRUE(world->leave(leaver));
    world->pump_for(std::chrono::milliseconds(20));
    for (int rank = leaver + 1; rank < 4; ++rank)
      EXPECT_LE(world->counter(rank, "connections"), 1) << "rank " << rank << " when rank " << leaver << " had left";
  }
  for (const World::Got& got : world->got(3)) EXPECT_EQ(got.kind, Event::Kind::kMessage) << "they have said goodbye";
}

// [C9] A rank that has left is reported as lost, once, only to peers that still need something of it.
TEST_P(LeavingTest, WhoSendsToARankThatHasLeftIsTold) {
  if (GetParam().name == "ucx_shared_memory")
    GTEST_SKIP() << "UCX looks for ends of processes there, which run on here";
  auto world = make_world(2);
  ASSERT_TRUE(world);
  ASSERT_TRUE(world->send(1, 0, Note{}, {}));
  ASSERT_TRUE(world->pump_until([&] { return world->messages(0, 1) == 1; }));
  ASSERT_TRUE(world->leave(1));
  const auto losses = [&] {
    return std::count_if(world->got(0).begin(), world->got(0).end(),
                         [](const World::Got& got) { return got.kind == Event::Kind::kPeerFailed && got.peer == 1; });
  };
  world->pump_for(std::chrono::milliseconds(20));
  EXPECT_EQ(losses(), 0) << "it has said goodbye";
  const auto reported = [&] {
    world->at(0).send(1, Note{}, {});
    world->at(0).check_peers();
    return losses() > 0;
  };
  EXPECT_TRUE(world->pump_until(reported));
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(world->at(0).send(1, Note{}, {}));
    world->pump();
  }
  EXPECT_EQ(losses(), 1);
}

INSTANTIATE_TEST_SUITE_P(Transports, LeavingTest, ::testing::ValuesIn(networks()),
                         [](const auto& info) { return info.param.name; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(LeavingTest);

}  // namespace
}  // namespace ibcoll::conformance
