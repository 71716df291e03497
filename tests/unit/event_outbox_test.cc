// SPDX-License-Identifier: BSD-3-Clause
// The order in which a network transport hands out its events.
#include "runtime/transport/event_outbox.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

namespace ibcoll {
namespace {

struct TestPeer : OutboxPeer {
  int messages = 0;
  bool has_message() const { return messages > 0; }
};

class EventOutboxTest : public testing::Test {
 protected:
  EventOutboxTest() {
    for (int rank = 0; rank < 3; ++rank) peers_[static_cast<size_t>(rank)].rank = rank;
  }
  void arrive(int rank) {
    TestPeer& peer = peers_[static_cast<size_t>(rank)];
    ++peer.messages;
    outbox_.ready(peer);
  }
  // As letters: S for kSent, M for a message, F for a failure, each with its rank.
  std::string poll(size_t room) {
    std::vector<Event> events(room);
    events.resize(outbox_.hand_out(events, [](TestPeer& peer, Event& event) {
      --peer.messages;
      event = {Event::Kind::kMessage, peer.rank, {}, {}, 0};
      return true;
    }));
    std::string text;
    for (const Event& event : events) {
      text += event.kind == Event::Kind::kSent ? 'S' : event.kind == Event::Kind::kMessage ? 'M' : 'F';
      text += std::to_string(event.peer);
    }
    return text;
  }

  std::array<TestPeer, 3> peers_;
  EventOutbox<TestPeer, int> outbox_;
};

TEST_F(EventOutboxTest, PeersTakeTurns) {
  for (const int rank : {2, 2, 2, 0, 1, 1}) arrive(rank);
  EXPECT_EQ(poll(4), "M2M0M1M2");
  arrive(0);
  EXPECT_EQ(poll(4), "M1M2M0");
  EXPECT_EQ(poll(4), "");
}

TEST_F(EventOutboxTest, WhatThisRankLacksComesBeforeMessagesAndADeathAfterThoseOfItsPeer) {
  arrive(0);
  arrive(0);
  outbox_.failed(peers_[0], "died", IBCOLL_OK);
  outbox_.failed(peers_[1], "no memory", IBCOLL_ERR_NO_MEMORY);
  outbox_.failed(peers_[2], "died", IBCOLL_OK);
  outbox_.sent(0, 7);
  EXPECT_EQ(poll(4), "S0F1M0M0");
  EXPECT_EQ(poll(1), "F0");
  EXPECT_EQ(poll(4), "F2");
}

TEST_F(EventOutboxTest, ADeathWaitsForTheMessagesOfItsOwnPeerOnly) {
  arrive(0);
  outbox_.failed(peers_[0], "died", IBCOLL_OK);
  outbox_.failed(peers_[1], "died", IBCOLL_OK);
  EXPECT_EQ(poll(2), "M0F0");
  EXPECT_EQ(poll(2), "F1");
  arrive(2);
  arrive(2);
  outbox_.failed(peers_[2], "died", IBCOLL_OK);
  EXPECT_EQ(poll(1), "M2");
  EXPECT_EQ(poll(3), "M2F2");
}

TEST_F(EventOutboxTest, AMessageThatIsNoEventTakesNoRoom) {
  for (const int rank : {0, 1, 1}) arrive(rank);
  std::array<Event, 2> events;
  const auto take = [](TestPeer& peer, Event& event) {
    --peer.messages;
    event.peer = peer.rank;
    return peer.rank == 1;
  };
  EXPECT_EQ(outbox_.hand_out(events, take), 2u);
  EXPECT_EQ(events[0].peer, 1);
  EXPECT_EQ(events[1].peer, 1);
}

TEST_F(EventOutboxTest, FailuresSayWhyAndWhatIsLacking) {
  const std::string why = "no memory for a queue pair";
  outbox_.failed(peers_[1], why, IBCOLL_ERR_NO_MEMORY);
  std::array<Event, 1> events;
  ASSERT_EQ(outbox_.hand_out(events, [](TestPeer&, Event&) { return false; }), 1u);
  EXPECT_EQ(lack_of(events[0]), IBCOLL_ERR_NO_MEMORY);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(events[0].payload.data()), events[0].payload.size()), why);
}

TEST_F(EventOutboxTest, WhatWasLentComesBackOnce) {
  outbox_.lend(1);
  outbox_.lend(2);
  std::vector<int> back;
  const auto keep = [&](int memory) { back.push_back(memory); };
  outbox_.take_back(keep);
  outbox_.take_back(keep);
  EXPECT_EQ(back, (std::vector<int>{1, 2}));
}

}  // namespace
}  // namespace ibcoll
