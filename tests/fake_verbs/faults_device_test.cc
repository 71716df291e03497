// SPDX-License-Identifier: BSD-3-Clause
// Devices and completion queues that end, or are small.
#include "tests/fake_verbs/faulty.h"

namespace ibcoll::fake_verbs {
namespace {

TEST_F(FaultTest, ARemovedDeviceLosesAllPeers) {
  expect_error_lines();
  auto world = make_connected(3, {kSoon});
  ASSERT_TRUE(world);
  ASSERT_NO_FATAL_FAILURE(expect_traffic(*world, 0, 2, 3));
  rank(0).traits.removed = true;
  expect_loss(*world, 0, "Input/output error; is the device still there?");
  ASSERT_NO_FATAL_FAILURE(expect_traffic(*world, 1, 2, 3));
}

TEST_F(FaultTest, ADeviceThatReportsItsEndLosesAllPeers) {
  auto world = make_connected(3);
  ASSERT_TRUE(world);
  ASSERT_NO_FATAL_FAILURE(expect_traffic(*world, 0, 2, 3));
  report(0, IBV_EVENT_DEVICE_FATAL);
  expect_loss(*world, 0, "fake_0, this rank's own device, has failed or was removed");
  expect_text(lost(*world, 0, 1), "IBCOLL_VERBS_DEVICE names another one");
  EXPECT_EQ(lack(*world, 0, 1), IBCOLL_ERR_TRANSPORT);
  EXPECT_EQ(lack(*world, 0, 2), IBCOLL_ERR_TRANSPORT);
  ASSERT_NO_FATAL_FAILURE(expect_traffic(*world, 1, 2, 3));
  forget_events();
}

TEST_F(FaultTest, OtherEventsOfADeviceLoseNobody) {
  auto world = make_connected(2);
  ASSERT_TRUE(world);
  for (const ibv_event_type event : {IBV_EVENT_PORT_ERR, IBV_EVENT_PORT_ACTIVE, IBV_EVENT_GID_CHANGE}) report(0, event);
  world->at(0).check_peers();
  ASSERT_NO_FATAL_FAILURE(expect_traffic(*world, 0, 1, 3));
  EXPECT_EQ(lost(*world, 0, 1), "");
  forget_events();
}

TEST_F(FaultTest, ADeviceThatIsGoneFromTheStartIsAnErrorOfOpening) {
  const char* no_settings[] = {nullptr};
  const Config config = *Config::load_from(no_settings);
  rank(0).traits.removed = true;
  const auto opened = verbs::Transport::open({0, 2, &config, true, 1});
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.status().code(), IBCOLL_ERR_CONFIG);
  expect_text(opened.status().text(), "fake_0: ibv_open_device: Input/output error; may this user open");
}

// By it the order of operands is chosen, so it must not change from run to run.
TEST_F(FaultTest, WhatIsNotTimedFollowsFromTheKindOfDevice) {
  for (const bool software : {false, true}) {
    begin(conformance::test_seed());
    if (software) rank(1).traits.vendor = 0xffffff;  // that of soft-RoCE
    auto world = make(2);
    ASSERT_TRUE(world);
    EXPECT_FALSE(world->at(0).steady_model().by_ranks);
    EXPECT_EQ(world->at(1).steady_model().by_ranks, software);
    EXPECT_EQ(world->at(1).steady_model().cpu_us > 1, software);
  }
}

TEST_F(FaultTest, ACompletionQueueThatOverrunsLosesAllPeers) {
  auto world = make_connected(2);
  ASSERT_TRUE(world);
  ASSERT_TRUE(overrun(0));
  EXPECT_EQ(events(0), std::vector{IBV_EVENT_CQ_ERR});
  expect_loss(*world, 0, "fake_0, this rank's own device, fails: ibv_poll_cq");
  EXPECT_EQ(lack(*world, 0, 1), IBCOLL_ERR_TRANSPORT);
  forget_events();
}

// Every request of every connection may fail at once. That no queue overran is looked at after each test.
TEST_F(FaultTest, ACompletionQueueHasRoomForAllThatMayFail) {
  constexpr int kRanks = 12;
  const std::vector<std::byte> source(16 << 20);  // many requests, none of which is executed
  for (const bool resizes : {true, false}) {
    SCOPED_TRACE(resizes ? "grows" : "as large as ever");
    begin(conformance::test_seed());
    for (int number = 0; number < kRanks; ++number) rank(number).traits.resizes = resizes;
    auto world = make(kRanks);
    ASSERT_TRUE(world);
    for (int peer = 1; peer < kRanks; ++peer) ASSERT_TRUE(world->send(0, peer, numbered(1), {}));
    ASSERT_TRUE(world->pump_until([&] { return world->counter(0, "connections") == kRanks - 1; }));
    rank(0).faults.execute = [](const ibv_send_wr&) { return Outcome{.waits = true}; };
    for (int peer = 1; peer < kRanks; ++peer)
      while (world->at(0).put(peer, {0x1000, source.size(), 1}, source, numbered(2), 1) == PutResult::kPending) {
      }
    rank(0).faults.execute = [](const ibv_send_wr&) { return Outcome{IBV_WC_GENERAL_ERR}; };
    world->put_to_sleep(0);  // its completions pile up
    for (int i = 0; i < 3'000; ++i) world->pump();
    world->wake_up(0);
    ASSERT_TRUE(world->pump_until([&] { return world->counter(0, "failed_peers") == kRanks - 1; }));
  }
}

TEST_F(FaultTest, ASmallCompletionQueueLimitsTheConnections) {
  rank(0).traits.most_completions = 2 * verbs::completions_for(1);
  auto world = make(4);
  ASSERT_TRUE(world);
  for (int peer = 1; peer < 4; ++peer) world->at(0).send(peer, numbered(1), {});
  ASSERT_TRUE(world->at(3).send(0, numbered(1), {}));
  ASSERT_TRUE(world->pump_until([&] { return world->messages(1, 0) + world->messages(2, 0) == 2; }));
  ASSERT_TRUE(world->pump_until([&] { return !lost(*world, 0, 3).empty() && !lost(*world, 3, 0).empty(); }));
  expect_text(lost(*world, 0, 3), "it would take queue pair number 3; IBCOLL_VERBS_QUEUE_PAIRS or the device allows 2");
  EXPECT_EQ(lack(*world, 0, 3), IBCOLL_ERR_TRANSPORT);
  expect_text(lost(*world, 3, 0), "it closed the connection to this rank; its own error says why");
  ASSERT_NO_FATAL_FAILURE(expect_traffic(*world, 0, 2, 3));
}

// Its greetings cannot leave: after the time that a device tries, a port that is down is a reason.
TEST_F(FaultTest, APortThatStaysDownLosesThePeer) {
  auto world = make(2, {kSoon});
  ASSERT_TRUE(world);
  rank(0).traits.port = IBV_PORT_DOWN;
  ASSERT_TRUE(world->at(0).send(1, numbered(1), {}));
  const auto reported = [&] {
    world->at(0).check_peers();
    return !lost(*world, 0, 1).empty();
  };
  ASSERT_TRUE(world->pump_until(reported));
  expect_text(lost(*world, 0, 1), "the port fake_0:1 is down; check the cable");
  EXPECT_EQ(lack(*world, 0, 1), IBCOLL_OK) << "the other end of the cable may have failed";
}

// The device gave up before the port had been down for that time, and no peer answers a greeting after it.
TEST_F(FaultTest, APortThatIsDownWhenNobodyAnswersIsTheReason) {
  auto world = make_connected(2, {kSoon});
  ASSERT_TRUE(world);
  rank(0).traits.port = IBV_PORT_DOWN;
  rank(0).faults.execute = [](const ibv_send_wr&) { return Outcome{IBV_WC_RETRY_EXC_ERR}; };
  expect_loss(*world, 0, "the port fake_0:1 is down; check the cable", false);
}

TEST_F(FaultTest, APortThatComesBackLosesNobody) {
  auto world = make_connected(2);
  ASSERT_TRUE(world);
  rank(0).traits.port = IBV_PORT_DOWN;
  ASSERT_TRUE(world->at(0).send(1, numbered(1), {}));
  for (int i = 0; i < 400; ++i) world->pump();
  rank(0).traits.port = IBV_PORT_ACTIVE;
  ASSERT_TRUE(world->pump_until([&] { return world->messages(1, 0) == 1; }));
  ASSERT_NO_FATAL_FAILURE(expect_traffic(*world, 0, 1, 3));
}

}  // namespace
}  // namespace ibcoll::fake_verbs
