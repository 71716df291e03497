// SPDX-License-Identifier: BSD-3-Clause
// A rank that leaves and still waits for a peer gets a first greeting of another one: it opens no connection, as it
// would read nothing, and answers that it leaves.
#include "runtime/verbs/transport.h"
#include "tests/conformance/group_network.h"
#include "tests/conformance/world.h"

namespace ibcoll::conformance {
namespace {

class LateConnectionTest : public ::testing::TestWithParam<const char*> {};

TEST_P(LateConnectionTest, ALeavingRankOpensNone) {
  const bool by_rdmacm = std::string_view(GetParam()) == "rdmacm";
  if (by_rdmacm ? !machine_has_rdmacm() : !machine_has_rdma()) GTEST_SKIP() << "needs an RDMA device";
  const std::string connect = std::string("IBCOLL_VERBS_CONNECT=") + GetParam();
  World world(NetworkGroup<verbs::Transport>::make(3, test_seed(), {connect.c_str()}));
  world.put_to_sleep(1);  // does not answer, so rank 0 takes its time to leave
  ASSERT_TRUE(world.at(0).send(1, Note{}, {}));
  ASSERT_TRUE(world.at(2).send(0, Note{}, {}));
  ASSERT_TRUE(world.leave(0));
  EXPECT_EQ(world.counter(2, "connections"), 0);
  ASSERT_EQ(world.got(2).size(), 1u);
  const World::Got& lost = world.got(2).front();
  EXPECT_EQ(lost.kind, Event::Kind::kPeerFailed);
  EXPECT_EQ(lost.peer, 0);
  const std::string text(reinterpret_cast<const char*>(lost.payload.data()), lost.payload.size());
  EXPECT_NE(text.find("rank 2: verbs: lost rank 0: it closed the connection to this rank"), std::string::npos) << text;
}

INSTANTIATE_TEST_SUITE_P(Transports, LateConnectionTest, ::testing::Values("datagrams", "rdmacm"),
                         [](const auto& info) {
                           return std::string(info.param) == "rdmacm" ? "verbs_rdmacm" : "verbs_imm";
                         });

}  // namespace
}  // namespace ibcoll::conformance
