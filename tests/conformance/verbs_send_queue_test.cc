// SPDX-License-Identifier: BSD-3-Clause
// More work requests than a send queue has entries: the rest waits, in order, and nothing is lost or sent twice.
#include "runtime/verbs/transport.h"
#include "tests/conformance/group_network.h"
#include "tests/conformance/world.h"

namespace ibcoll::conformance {
namespace {

class SendQueueTest : public ::testing::TestWithParam<const char*> {};

// A put of more than 12 MB takes four requests and its note, and 31 puts are accepted before an answer: 155 requests
// for 128 entries, long before the first of them is through.
TEST_P(SendQueueTest, LongPutsFillIt) {
  if (!machine_has_rdma()) GTEST_SKIP() << "needs an RDMA device";
  World world(NetworkGroup<verbs::Transport>::make(2, test_seed(), {"IBCOLL_VERBS_NOTIFY=memory"}));
  constexpr size_t kBytes = (12u << 20) + 4096;
  constexpr uint32_t kPuts = 31;
  GuardedMemory memory(kBytes);
  std::vector<std::byte> source(kBytes);
  fill(source, 7);
  ASSERT_TRUE(world.send(0, 1, numbered(9999, 0), {}));  // connected
  ASSERT_TRUE(world.pump_until([&] { return world.messages(1, 0) == 1; }));
  world.got(1).clear();
  const RemoteRegion region = world.at(1).expose(0, memory.bytes());
  ASSERT_NE(region.key, 0u);
  uint32_t accepted = 0;
  while (world.at(0).put(1, region, source, numbered(accepted, kBytes), accepted) == PutResult::kPending) ++accepted;
  EXPECT_EQ(accepted, kPuts);
  EXPECT_TRUE(world.pump_until([&] { return world.messages(1, 0) >= accepted && world.got(0).size() >= accepted; }));
  world.pump_for(std::chrono::milliseconds(20));
  ASSERT_EQ(world.got(0).size(), accepted);
  ASSERT_EQ(world.got(1).size(), accepted);
  for (uint32_t i = 0; i < accepted; ++i) {
    EXPECT_EQ(world.got(0)[i].kind, Event::Kind::kSent);
    EXPECT_EQ(world.got(0)[i].token, i);
    EXPECT_EQ(world.got(1)[i].note.op, i);
  }
  EXPECT_EQ(first_wrong(memory.bytes(), 7), kBytes);
  EXPECT_TRUE(memory.guards_intact());
  EXPECT_EQ(world.counter(0, "reconnections"), 0) << "a full queue is no fault";
  world.at(1).conceal(0, region);
}

INSTANTIATE_TEST_SUITE_P(Transports, SendQueueTest, ::testing::Values("memory"),
                         [](const auto&) { return "verbs_memory"; });

}  // namespace
}  // namespace ibcoll::conformance
