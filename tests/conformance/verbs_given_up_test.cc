// SPDX-License-Identifier: BSD-3-Clause
// A rank that gives a peer up before they are connected tells it, so that the peer need not wait for as long as a
// collective may take.
#include <algorithm>

#include "runtime/verbs/transport.h"
#include "tests/conformance/group_network.h"
#include "tests/conformance/world.h"

namespace ibcoll::conformance {
namespace {

class GivenUpConnectionTest : public ::testing::TestWithParam<const char*> {};

bool lost(World& world, int rank, int peer) {
  const std::vector<World::Got>& got = world.got(rank);
  return std::any_of(got.begin(), got.end(), [&](const World::Got& event) {
    return event.kind == Event::Kind::kPeerFailed && event.peer == peer;
  });
}

// The first of three ranks may connect to one other.
TEST_P(GivenUpConnectionTest, TheOtherSideIsTold) {
  const bool by_rdmacm = std::string_view(GetParam()) == "rdmacm";
  if (by_rdmacm ? !machine_has_rdmacm() : !machine_has_rdma()) GTEST_SKIP() << "needs an RDMA device";
  const std::string connect = std::string("IBCOLL_VERBS_CONNECT=") + GetParam();
  World world(NetworkGroup<verbs::Transport>::make(3, test_seed(), {connect.c_str(), "IBCOLL_VERBS_QUEUE_PAIRS=1"}));
  ASSERT_TRUE(world.send(0, 1, Note{}, {}));
  ASSERT_TRUE(world.pump_until([&] { return world.messages(1, 0) == 1; }));
  ASSERT_TRUE(world.send(2, 0, Note{}, {}));
  ASSERT_TRUE(world.pump_until([&] { return lost(world, 0, 2) && lost(world, 2, 0); }));
  for (const World::Got& event : world.got(2)) {
    const std::string text(reinterpret_cast<const char*>(event.payload.data()), event.payload.size());
    EXPECT_NE(text.find("rank 2: verbs: lost rank 0: it closed the connection to this rank"), std::string::npos)
        << text;
  }
  EXPECT_TRUE(world.send(1, 0, Note{}, {}));
  EXPECT_TRUE(world.pump_until([&] { return world.messages(0, 1) == 1; })) << "others still send";
}

INSTANTIATE_TEST_SUITE_P(Transports, GivenUpConnectionTest, ::testing::Values("datagrams", "rdmacm"),
                         [](const auto& info) {
                           return std::string(info.param) == "rdmacm" ? "verbs_rdmacm" : "verbs_imm";
                         });

}  // namespace
}  // namespace ibcoll::conformance
