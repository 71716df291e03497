// SPDX-License-Identifier: BSD-3-Clause
// Calls that make or end a connection, and what ranks do not have alike.
#include "tests/fake_verbs/faulty.h"

namespace ibcoll::fake_verbs {
namespace {

std::function<int(ibv_qp_type, ibv_qp_state)> refuse_state(ibv_qp_type type, ibv_qp_state state, int code) {
  return [=](ibv_qp_type of, ibv_qp_state to) { return of == type && to == state ? code : 0; };
}

TEST_F(FaultTest, AConnectionThatCannotBeMadeIsAnErrorOnBothSides) {
  const std::pair<ibv_qp_state, const char*> kStates[] = {
      {IBV_QPS_INIT, "INIT"}, {IBV_QPS_RTR, "RTR"}, {IBV_QPS_RTS, "RTS"}};
  for (const auto& [state, name] : kStates) {
    SCOPED_TRACE(name);
    begin(conformance::test_seed());
    auto world = make(2);
    ASSERT_TRUE(world);
    rank(0).faults.modify = refuse_state(IBV_QPT_RC, state, EINVAL);
    expect_loss(*world, 0, std::string("fake_0: ibv_modify_qp to ") + name + ": Invalid argument; the device refuses");
    EXPECT_EQ(lack(*world, 0, 1), IBCOLL_ERR_SYSTEM);
    EXPECT_EQ(lack(*world, 1, 0), IBCOLL_OK) << "it knows no reason";
    expect_text(lost(*world, 1, 0), "it closed the connection to this rank; its own error says why");
  }
}

TEST_F(FaultTest, AQueuePairThatCannotBeMadeIsAnErrorOnBothSides) {
  auto world = make(3);
  ASSERT_TRUE(world);
  rank(0).faults.create_qp = [](ibv_qp_type) { return ENOMEM; };
  expect_loss(*world, 0, "fake_0: ibv_create_qp (reliable connection): Cannot allocate memory");
  EXPECT_EQ(lack(*world, 0, 1), IBCOLL_ERR_NO_MEMORY);
  ASSERT_NO_FATAL_FAILURE(expect_traffic(*world, 1, 2, 3));
}

// How long a device repeats what is lost, and how often.
TEST_F(FaultTest, TheDeviceRepeatsAsTheSettingsSay) {
  auto world = make_connected(2, {"IBCOLL_VERBS_TIMEOUT=16", "IBCOLL_VERBS_RETRIES=3"});
  ASSERT_TRUE(world);
  for (const int one : {0, 1}) {
    EXPECT_EQ(rank(one).ready.timeout, 16);
    EXPECT_EQ(rank(one).ready.retry_cnt, 3);
    EXPECT_EQ(rank(one).ready.rnr_retry, 3);
  }
}

// No way to the address now: tried again, and connected when there is one.
TEST_F(FaultTest, APathThatComesBackIsTaken) {
  auto world = make(2);
  ASSERT_TRUE(world);
  rank(0).faults.modify = [left = 3](ibv_qp_type of, ibv_qp_state to) mutable {
    return of == IBV_QPT_RC && to == IBV_QPS_RTR && left > 0 ? --left, ETIMEDOUT : 0;
  };
  rank(1).faults.create_ah = [left = 3]() mutable { return left > 0 ? --left, EHOSTUNREACH : 0; };
  ASSERT_NO_FATAL_FAILURE(expect_traffic(*world, 0, 1, 3));
}

// What a rank has accepted leaves without another poll of its own, as when it computes.
TEST_F(FaultTest, AFirstMessageLeavesARankThatDoesNotPoll) {
  for (const char* const notify : {"IBCOLL_VERBS_NOTIFY=imm", "IBCOLL_VERBS_NOTIFY=memory"}) {
    SCOPED_TRACE(notify);
    begin(conformance::test_seed());
    auto world = make(2, {notify});
    ASSERT_TRUE(world);
    EXPECT_FALSE(world->at(0).unsent());
    world->put_to_sleep(0);
    ASSERT_TRUE(world->at(0).send(1, numbered(7), {}));
    EXPECT_TRUE(world->at(0).unsent());
    EXPECT_TRUE(world->pump_until([&] {
      world->at(0).push();
      return world->messages(1, 0) == 1;
    }));
    EXPECT_FALSE(world->at(0).unsent());
  }
}

// The connection is broken when its rank leaves: it is made anew for what was accepted before.
TEST_F(FaultTest, ALeavingRankDeliversWhatItHasAccepted) {
  auto world = make_connected(2);
  ASSERT_TRUE(world);
  bool broken = false;
  rank(0).faults.execute = [first = true](const ibv_send_wr&) mutable {
    return std::exchange(first, false) ? Outcome{IBV_WC_RETRY_EXC_ERR} : Outcome();
  };
  rank(0).faults.modify = [&broken](ibv_qp_type, ibv_qp_state to) {
    broken = broken || to == IBV_QPS_ERR;
    return 0;
  };
  world->put_to_sleep(0);
  ASSERT_TRUE(world->at(0).send(1, numbered(1), {}));
  EXPECT_TRUE(world->pump_until([&] {
    Event event;
    EXPECT_EQ(world->at(0).poll({&event, 1}), 0u);
    return broken;
  }));
  EXPECT_EQ(world->messages(1, 0), 0u);
  ASSERT_TRUE(world->leave(0));
  EXPECT_TRUE(world->pump_until([&] { return world->messages(1, 0) == 1; }));
}

// The connection breaks after the goodbye was accepted, and what was posted to it may never be completed.
TEST_F(FaultTest, AConnectionThatBreaksAfterTheGoodbyeIsMadeAnew) {
  for (const bool flushes : {true, false}) {
    SCOPED_TRACE(flushes);
    begin(conformance::test_seed());
    auto world = make_connected(2);
    ASSERT_TRUE(world);
    rank(0).traits.flushes = flushes;
    rank(0).faults.execute = [first = true](const ibv_send_wr&) mutable {
      return std::exchange(first, false) ? Outcome{IBV_WC_RETRY_EXC_ERR} : Outcome();
    };
    world->put_to_sleep(0);
    ASSERT_TRUE(world->at(0).send(1, numbered(1), {}));
    ASSERT_TRUE(world->leave(0));
    EXPECT_TRUE(world->pump_until([&] { return world->messages(1, 0) == 1; }));
  }
}

// The goodbye has landed, but its acknowledgement is lost. The new connection carries credit only, which reports no
// completion.
TEST_F(FaultTest, AGoodbyeWhoseAcknowledgementIsLostHoldsNobody) {
  auto world = make_connected(2);
  ASSERT_TRUE(world);
  constexpr uint64_t kMessages = 40;  // their credit is returned again by a new connection
  for (uint32_t i = 0; i < kMessages; ++i)
    ASSERT_TRUE(world->pump_until([&] { return world->at(1).send(0, numbered(i), {}); }));
  EXPECT_TRUE(world->pump_until([&] { return world->messages(0, 1) == kMessages; }));
  rank(0).faults.execute = [first = true](const ibv_send_wr&) mutable {
    return std::exchange(first, false) ? Outcome{IBV_WC_RETRY_EXC_ERR, true} : Outcome();
  };
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_TRUE(world->leave(0));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(800));
}

TEST_F(FaultTest, APathThatStaysAwayLosesThePeer) {
  auto world = make(2, {kSoon});
  ASSERT_TRUE(world);
  rank(0).faults.create_ah = [] { return EHOSTUNREACH; };
  expect_loss(*world, 0, "fake_0: ibv_create_ah to ::ffff:10.0.0.2: No route to host; does the peer's address answer?",
              false);
  EXPECT_EQ(lack(*world, 0, 1), IBCOLL_OK) << "the peer's host may be down";
}

TEST_F(FaultTest, AQueuePairThatCannotBeBroughtDownIsDestroyed) {
  expect_error_lines();
  auto world = make_connected(2);
  ASSERT_TRUE(world);
  rank(0).faults.modify = refuse_state(IBV_QPT_RC, IBV_QPS_ERR, EINVAL);
  rank(0).faults.execute = [n = 0](const ibv_send_wr&) mutable {
    return ++n == 1 ? Outcome{IBV_WC_RETRY_EXC_ERR} : Outcome();
  };
  ASSERT_NO_FATAL_FAILURE(expect_traffic(*world, 0, 1, 3));
}

// A driver that does not flush: the completions are awaited for a second. They may come while the queue pair is
// destroyed, and say nothing of the next one.
TEST_F(FaultTest, ADriverThatDoesNotFlushIsWaitedForASecond) {
  rank(0).traits.flushes = rank(1).traits.flushes = false;
  rank(0).traits.flushes_late = true;
  auto world = make_connected(2);
  ASSERT_TRUE(world);
  rank(0).faults.execute = [n = 0](const ibv_send_wr&) mutable {
    return ++n == 2 ? Outcome{IBV_WC_RETRY_EXC_ERR, true} : Outcome();
  };
  ASSERT_NO_FATAL_FAILURE(expect_traffic(*world, 0, 1, 3));
  EXPECT_EQ(world->counter(0, "reconnections"), 1);
}

// What this rank lacks is certain at once. Its queue pair is still there, for what a driver may yet report.
TEST_F(FaultTest, ALackIsReportedBeforeTheConnectionHasDrained) {
  expect_error_lines();
  rank(0).traits.flushes = rank(1).traits.flushes = false;
  auto world = make_connected(2);
  ASSERT_TRUE(world);
  const size_t objects = live_objects();
  rank(0).faults.execute = [](const ibv_send_wr&) { return Outcome{IBV_WC_LOC_PROT_ERR}; };
  ASSERT_TRUE(world->at(0).send(1, numbered(1), {}));
  ASSERT_TRUE(world->pump_until([&] { return !lost(*world, 0, 1).empty(); }));
  EXPECT_EQ(live_objects(), objects);
  EXPECT_EQ(lack(*world, 0, 1), IBCOLL_ERR_TRANSPORT);
}

// The credit for all slots is lost with the connection, while the sender has no slot left.
TEST_F(FaultTest, CreditIsToldAgainOnANewConnection) {
  auto world = make_connected(2);
  ASSERT_TRUE(world);
  world->put_to_sleep(1);
  size_t sent = 0;
  while (world->at(0).send(1, numbered(0), {})) ++sent;
  ASSERT_GT(sent, 0u);
  drain(*world);
  rank(1).faults.execute = [&, broken = false](const ibv_send_wr&) mutable {
    if (broken) return Outcome();
    if (world->messages(1, 0) < sent) return Outcome{.waits = true};
    broken = true;
    return Outcome{IBV_WC_RETRY_EXC_ERR};
  };
  world->wake_up(1);
  ASSERT_TRUE(world->pump_until([&] { return world->counter(1, "reconnections") == 1; }));
  EXPECT_TRUE(world->send(0, 1, numbered(1), {})) << "no slot is free";
  EXPECT_TRUE(world->pump_until([&] { return world->messages(1, 0) == sent + 1; }));
}

// As many messages as there are slots come while the receiver does not poll.
TEST_F(FaultTest, EachSlotHasAReceive) {
  auto world = make_connected(2, {"IBCOLL_VERBS_NOTIFY=imm"});
  ASSERT_TRUE(world);
  drain(*world);
  ASSERT_TRUE(world->send(1, 0, numbered(0), {}));  // which returns credit for all slots
  ASSERT_TRUE(world->pump_until([&] { return world->messages(0, 1) == 1; }));
  drain(*world);
  world->put_to_sleep(1);
  size_t sent = 0;
  while (world->at(0).send(1, numbered(0), {})) ++sent;
  EXPECT_EQ(sent, verbs::kSlots);
  for (int i = 0; i < 4; ++i) drain(*world);  // longer than a device tries
  world->wake_up(1);
  EXPECT_TRUE(world->pump_until([&] { return world->messages(1, 0) == sent; }));
  EXPECT_EQ(lost(*world, 0, 1), "");
}

TEST_F(FaultTest, TheSmallerMtuOfTheTwoIsTaken) {
  rank(1).traits.mtu = IBV_MTU_1024;
  for (const int first : {0, 1}) {
    auto world = make(2);
    ASSERT_TRUE(world);
    ASSERT_NO_FATAL_FAILURE(expect_traffic(*world, 1 - first, first));
    world.reset();
    begin(conformance::test_seed());
    rank(0).traits.mtu = IBV_MTU_256;
  }
}

TEST_F(FaultTest, AQueuePairForGreetingsThatStopsIsResetAndGoesOn) {
  auto world = make(2);
  ASSERT_TRUE(world);
  rank(0).faults.datagram = [n = 0]() mutable { return ++n <= 2 ? IBV_WC_GENERAL_ERR : IBV_WC_SUCCESS; };
  ASSERT_NO_FATAL_FAILURE(expect_traffic(*world, 0, 1, 3));
}

}  // namespace
}  // namespace ibcoll::fake_verbs
