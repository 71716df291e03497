// SPDX-License-Identifier: BSD-3-Clause
// The state that a rank keeps of a peer beside what it sends, without a device.
#include "runtime/verbs/peer.h"

#include <gtest/gtest.h>

#include <memory>

namespace ibcoll::verbs {
namespace {

// Message `sequence` as the peer writes it.
void land(Channel& channel, uint64_t sequence, SlotKind kind) {
  SlotHeader& header = channel.landing.slots[(sequence - 1) % kSlots].header;
  header.kind = kind;
  header.sequence = sequence;
}

TEST(VerbsReceiving, AMessageIsThereWhenItsNumberIsAPutWhenItsImmediateIs) {
  const auto channel = std::make_unique<Channel>();
  Receiving receiving;
  EXPECT_FALSE(receiving.has_next());
  receiving.use(*channel, Notify::kMemory);
  EXPECT_FALSE(receiving.has_next());
  land(*channel, 1, SlotKind::kMessage);
  land(*channel, 2, SlotKind::kPut);
  land(*channel, 3, SlotKind::kLeaving);
  EXPECT_EQ(receiving.delivered(), 1u);
  EXPECT_FALSE(receiving.has_goodbye());
  receiving.add_immediate();
  EXPECT_EQ(receiving.delivered(), 3u);
  EXPECT_TRUE(receiving.has_goodbye());
  SlotHeader header;
  receiving.take_next(header);
  receiving.take_next(header);
  EXPECT_EQ(header.kind, SlotKind::kPut);
  land(*channel, 4, SlotKind::kPut);
  EXPECT_EQ(receiving.delivered(), 3u) << "its immediate was that of message 2";
}

TEST(VerbsReceiving, CreditIsOwedAfterHalfOfTheSlots) {
  const auto channel = std::make_unique<Channel>();
  Receiving receiving;
  receiving.use(*channel, Notify::kImmediate);
  SlotHeader header;
  for (uint64_t i = 1; i <= kSlots / 2; ++i) {
    receiving.add_immediate();
    ASSERT_TRUE(receiving.has_next());
    receiving.take_next(header);
  }
  EXPECT_FALSE(receiving.has_next());
  EXPECT_FALSE(receiving.credit_is_due()) << "the caller may still read the slots";
  receiving.release();
  EXPECT_TRUE(receiving.credit_is_due());
  receiving.notified();
  EXPECT_FALSE(receiving.credit_is_due());
  receiving.forget_notified();
  EXPECT_TRUE(receiving.credit_is_due());
}

TEST(VerbsLiveness, AttemptsCountWhileNothingComesThrough) {
  Liveness liveness;
  for (uint32_t i = 0; i < Liveness::kMostAttempts; ++i) EXPECT_TRUE(liveness.may_reconnect(5));
  EXPECT_FALSE(liveness.may_reconnect(5));
  EXPECT_TRUE(liveness.may_reconnect(6));
}

TEST(VerbsLiveness, ASilentDeviceIsAskedAndOwesAnAnswer) {
  constexpr Time kSecond = 1'000'000'000;
  Liveness liveness;
  liveness.connected(kSecond);
  EXPECT_FALSE(liveness.is_quiet(2 * kSecond - 1));
  EXPECT_TRUE(liveness.is_quiet(2 * kSecond));
  liveness.ask(2 * kSecond);
  liveness.asked(2 * kSecond);
  EXPECT_FALSE(liveness.is_quiet(2 * kSecond)) << "it has just been asked";
  EXPECT_TRUE(liveness.unanswered_for(5 * kSecond, 2 * kSecond));
  liveness.answered();
  liveness.look(5 * kSecond, 2 * kSecond);
  EXPECT_FALSE(liveness.is_asked());
  EXPECT_FALSE(liveness.is_quiet(5 * kSecond));
}

TEST(VerbsLiveness, ADeadlineOnlyMovesAwayUntilItIsMet) {
  Liveness liveness;
  liveness.may_take_until(50);
  EXPECT_FALSE(liveness.has_deadline()) << "there is none to move";
  liveness.answer_by(100);
  liveness.may_take_until(50);
  EXPECT_FALSE(liveness.is_overdue(100));
  EXPECT_TRUE(liveness.is_overdue(101));
  liveness.connected(101);
  EXPECT_FALSE(liveness.is_overdue(1000));
}

TEST(VerbsConnection, EpochsGrowAndForgetTheHandshake) {
  Connection connection;
  connection.next_epoch();
  EXPECT_EQ(connection.epoch(), 1u);
  connection.greets(Greeting{});
  EXPECT_FALSE(connection.receives());
  connection.has_received(Greeting{});
  EXPECT_TRUE(connection.receives());
  connection.want_epoch(7);
  connection.want_epoch(3);
  EXPECT_TRUE(connection.wants_another());
  connection.breaks(0);
  EXPECT_FALSE(connection.receives());
  connection.close();
  connection.next_epoch();
  EXPECT_EQ(connection.epoch(), 7u);
  EXPECT_FALSE(connection.handshake.has_theirs);
  EXPECT_FALSE(connection.wants_another());
}

TEST(VerbsNewKeys, AreTakenWhenAllOfThemAreThere) {
  const RemoteRegion region{0, 10, uint64_t{5} << 32 | 77};
  NewKeys keys;
  EXPECT_EQ(keys.key_at(region), 77u);
  const auto landing = std::make_unique<Rekeys>();
  keys.expect(1);
  landing->epoch = 2;
  landing->count = 1;
  landing->keys[0] = {5, 77, 78};
  EXPECT_FALSE(keys.take(*landing, 2)) << "no digest yet";
  landing->digest = landing->digest_now();
  EXPECT_FALSE(keys.take(*landing, 3)) << "of the epoch before";
  EXPECT_TRUE(keys.take(*landing, 2));
  EXPECT_EQ(keys.key_at(region), 78u);
  EXPECT_EQ(keys.key_at({0, 10, uint64_t{5} << 32 | 76}), 76u) << "an earlier one of that number";
  keys.forget(region);
  EXPECT_EQ(keys.key_at(region), 77u);
}

}  // namespace
}  // namespace ibcoll::verbs
