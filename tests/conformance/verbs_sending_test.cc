// SPDX-License-Identifier: BSD-3-Clause
// The messages to one peer, without a device: the send queue, and messages until they are consumed.
#include "runtime/verbs/sending.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace ibcoll::verbs {
namespace {

TEST(VerbsSendQueue, ItAsksForCompletionsNowAndThen) {
  SendQueue queue;
  EXPECT_TRUE(queue.drained());
  int asked = 0;
  for (uint64_t i = 0; i < 64; ++i) asked += queue.add(i + 1, false) ? 1 : 0;
  EXPECT_EQ(asked, 3);
  EXPECT_EQ(queue.room(), kSendDepth - 64);
  EXPECT_TRUE(queue.add(65, true));
  EXPECT_FALSE(queue.drained());
  queue.complete(63, [](uint64_t) {});
  EXPECT_FALSE(queue.drained());
  queue.complete(64, [](uint64_t) {});
  EXPECT_TRUE(queue.drained());
  EXPECT_EQ(queue.room(), kSendDepth);
}

TEST(VerbsSendQueue, ACompletionCoversAllBeforeIt) {
  SendQueue queue;
  queue.add(0, false);          // of no message
  queue.add(7 | kData, false);  // a fragment of a put
  queue.add(7, true);
  queue.add(8, true);
  EXPECT_EQ(queue.message_at(1), 7u);
  std::vector<uint64_t> done;
  queue.complete(2, [&](uint64_t message) { done.push_back(message); });
  EXPECT_EQ(done, std::vector<uint64_t>{7});
  EXPECT_EQ(queue.completed(), 3u);
  queue.complete(3, [&](uint64_t message) { done.push_back(message); });
  EXPECT_EQ(done, (std::vector<uint64_t>{7, 8}));
}

TEST(VerbsSendQueue, ABounceBufferIsFreeWhenItsRequestIsDone) {
  SendQueue queue;
  EXPECT_EQ(queue.free_bounce(), 0u);
  queue.add(1 | kData, true);
  queue.reads_bounce(0);
  EXPECT_EQ(queue.free_bounce(), 1u);
  queue.add(1 | kData, true);
  queue.reads_bounce(1);
  EXPECT_EQ(queue.free_bounce(), kBounces);
  queue.complete(0, [](uint64_t) {});
  EXPECT_EQ(queue.free_bounce(), 0u);
}

class VerbsSending : public testing::Test {
 protected:
  void SetUp() override { sending.use(*channel); }
  std::unique_ptr<Channel> channel = std::make_unique<Channel>();
  Sending sending;
};

TEST_F(VerbsSending, CreditComesBackByMessagesAndByTheCounter) {
  for (uint32_t i = 0; i < kSlots; ++i) {
    ASSERT_TRUE(sending.has_slot());
    EXPECT_EQ(sending.accept(SlotKind::kMessage).sequence, i + 1);
  }
  EXPECT_FALSE(sending.has_slot());
  sending.is_consumed(kSlots + 1);  // more than was sent
  channel->landing.consumed = kSlots + 1;
  EXPECT_EQ(sending.known_consumed(), 0u);
  EXPECT_FALSE(sending.has_slot());
  sending.is_consumed(1);
  EXPECT_TRUE(sending.has_slot());
  channel->landing.consumed = kSlots;
  EXPECT_FALSE(sending.has_unconsumed());
  sending.is_consumed(0);  // late
  EXPECT_EQ(sending.known_consumed(), kSlots);
}

TEST_F(VerbsSending, AConsumedPutKeepsItsSlotUntilItsSourceIsFree) {
  Outgoing& put = sending.accept(SlotKind::kPut);
  put.sent_pending = true;
  for (uint32_t i = 1; i < kSlots; ++i) sending.accept(SlotKind::kMessage);
  sending.is_consumed(kSlots);
  EXPECT_FALSE(sending.has_slot());
  put.sent_pending = false;
  EXPECT_TRUE(sending.has_slot());
}

TEST_F(VerbsSending, WhatHasNotLandedIsPostedAgain) {
  for (uint32_t i = 0; i < 5; ++i) sending.accept(SlotKind::kMessage);
  for (uint32_t i = 0; i < 4; ++i) sending.posted_next();
  std::vector<uint64_t> landed, lost;
  sending.resume(2, [&](const Outgoing& out, bool there) { (there ? landed : lost).push_back(out.sequence); });
  EXPECT_EQ(landed, (std::vector<uint64_t>{1, 2}));
  EXPECT_EQ(lost, (std::vector<uint64_t>{3, 4, 5}));
  EXPECT_EQ(sending.next_to_post().sequence, 3u);
  sending.resume(99, [](const Outgoing&, bool) {});
  EXPECT_FALSE(sending.has_unposted()) << "a peer that has more than was sent";
}

}  // namespace
}  // namespace ibcoll::verbs
