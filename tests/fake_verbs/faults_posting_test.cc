// SPDX-License-Identifier: BSD-3-Clause
// Calls of the data path that a device refuses.
#include "tests/fake_verbs/faulty.h"

namespace ibcoll::fake_verbs {
namespace {

bool is_datagram(const ibv_send_wr& request) { return request.opcode == IBV_WR_SEND; }

// The n-th work request, whichever it is: a message, a fragment of a put, its note, a bind, a credit. What follows it
// in the same call is not posted either.
TEST_F(FaultTest, ARefusedPostCostsAConnectionAndNoMessage) {
  expect_error_lines();
  for (const bool windows : {false, true})
    for (int n = 1; n <= 9; ++n) {
      SCOPED_TRACE("request " + std::to_string(n));
      begin(conformance::test_seed() + static_cast<uint64_t>(n));
      auto world = make_connected(2, {windows ? "IBCOLL_VERBS_WINDOWS=on" : "IBCOLL_VERBS_WINDOWS=off"});
      ASSERT_TRUE(world);
      rank(0).faults.post_send = [left = n](const ibv_send_wr& request) mutable {
        return is_datagram(request) || --left != 0 ? 0 : ENOMEM;
      };
      ASSERT_NO_FATAL_FAILURE(expect_traffic(*world, 0, 1, 12));
      EXPECT_EQ(world->counter(0, "reconnections"), 1);
      EXPECT_EQ(world->counter(0, "failed_peers"), 0);
    }
}

TEST_F(FaultTest, PostsThatAreAlwaysRefusedLoseThePeer) {
  expect_error_lines();
  auto world = make_connected(2);
  ASSERT_TRUE(world);
  rank(0).faults.post_send = [](const ibv_send_wr& request) { return is_datagram(request) ? 0 : ENOMEM; };
  expect_loss(*world, 0, "17 connections in a row broke before anything came through");
}

TEST_F(FaultTest, AReceiveThatIsRefusedLosesThePeer) {
  auto world = make_connected(2, {"IBCOLL_VERBS_NOTIFY=imm"});
  ASSERT_TRUE(world);
  rank(1).faults.post_receive = [] { return ENOMEM; };
  expect_loss(*world, 1, "fake_0: ibv_post_recv: Cannot allocate memory; the device, or the machine's memory");
  EXPECT_EQ(lack(*world, 1, 0), IBCOLL_ERR_NO_MEMORY);
}

TEST_F(FaultTest, WithoutInlineDataAllGoesFromRegisteredMemory) {
  rank(0).traits.most_inline = 0;
  auto world = make_connected(2);
  ASSERT_TRUE(world);
  ASSERT_NO_FATAL_FAILURE(expect_traffic(*world, 0, 1));
  EXPECT_EQ(rank(0).counts.inlined, 0u);
  EXPECT_GT(rank(1).counts.inlined, 0u);
}

TEST_F(FaultTest, GreetingsThatAreLostAreRepeated) {
  script().lost_permille = 600;
  script().repeated_permille = 300;
  script().overtaking = 50;
  auto world = make(4);
  ASSERT_TRUE(world);
  for (const auto& [a, b] : {std::pair{0, 1}, {2, 3}, {1, 2}, {3, 0}})
    ASSERT_NO_FATAL_FAILURE(expect_traffic(*world, a, b, 3));
  for (int number = 0; number < 4; ++number) EXPECT_EQ(world->counter(number, "connections"), 2);
}

}  // namespace
}  // namespace ibcoll::fake_verbs
