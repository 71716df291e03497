// SPDX-License-Identifier: BSD-3-Clause
// Shared memory into which another process has written, at any offset that a rank reads: the error names it, and harms
// no else.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <random>
#include <vector>

#include "runtime/shm/transport.h"

namespace ibcoll::conformance {
namespace {

constexpr uint64_t kRing = 16 * 1024;

class ShmSpoiled : public testing::Test {
 protected:
  void SetUp() override {
    Result<std::unique_ptr<shm::Segment>> made = shm::Segment::create(3, kRing);
    ASSERT_TRUE(made.ok()) << made.status().text();
    segment_ = std::move(*made);
    for (int rank = 0; rank < 3; ++rank)
      ranks_.push_back(std::make_unique<shm::Transport>(segment_, std::vector<int>{0, 1, 2}, rank, false));
    for (auto& rank : ranks_) ASSERT_TRUE(rank->node().probe().ok());
    for (int from : {1, 2}) ASSERT_TRUE(ranks_[static_cast<size_t>(from)]->send(0, {}, payload_));
    ASSERT_EQ(take(), 2);
  }
  // Messages that come to rank 0. Failures that are reported to it go to failed_.
  int take() {
    int messages = 0;
    std::array<Event, 8> events;
    for (int i = 0; i < 10; ++i)
      for (size_t count = ranks_[0]->poll(events), at = 0; at < count; ++at)
        if (events[at].kind == Event::Kind::kMessage)
          ++messages;
        else
          failed_.push_back(
              {events[at].peer, {reinterpret_cast<const char*>(events[at].payload.data()), events[at].payload.size()}});
    return messages;
  }
  void expect_spoiled() {
    ASSERT_EQ(failed_.size(), 1u);
    EXPECT_EQ(failed_[0].first, 1);
    EXPECT_NE(failed_[0].second.find("spoiled"), std::string::npos) << failed_[0].second;
    ASSERT_TRUE(ranks_[2]->send(0, {}, payload_)) << "others still send";
    EXPECT_EQ(take(), 1);
  }
  uint64_t* next_record() {
    shm::PairBlock& pair = segment_->pair(1, 0);
    return reinterpret_cast<uint64_t*>(segment_->ring(1, 0) + pair.tail.load() % kRing);
  }

  std::shared_ptr<shm::Segment> segment_;
  std::vector<std::unique_ptr<shm::Transport>> ranks_;
  const std::vector<std::byte> payload_ = std::vector<std::byte>(100);
  std::vector<std::pair<int, std::string>> failed_;
};

TEST_F(ShmSpoiled, ALengthThatCannotBe) {
  for (const uint64_t length : {uint64_t{kRing}, ~uint64_t{0} - 1, ~uint64_t{0} >> 1, uint64_t{4000}}) {
    if (!failed_.empty()) break;
    uint64_t* const record = next_record();
    ASSERT_TRUE(ranks_[1]->send(0, {}, payload_));
    *record = length;
    EXPECT_EQ(take(), 0);
    expect_spoiled();
  }
}

TEST_F(ShmSpoiled, AnEndThatCannotBe) {
  segment_->pair(1, 0).tail = ~uint64_t{0} / 3;
  EXPECT_EQ(take(), 0);
  expect_spoiled();
}

TEST_F(ShmSpoiled, AReaderThatHasTakenMoreThanWasSent) {
  segment_->pair(1, 0).head = 1 << 20;
  int sent = 0;
  while (sent < 1000 && ranks_[1]->send(0, {}, payload_)) ++sent;
  EXPECT_LT(sent, 1000);
  std::array<Event, 8> events;
  ASSERT_EQ(ranks_[1]->poll(events), 1u);
  EXPECT_EQ(events[0].kind, Event::Kind::kPeerFailed);
  EXPECT_EQ(events[0].peer, 0);
}

// Junk all over a ring and its counters: no rank reads or writes anywhere else.
TEST_F(ShmSpoiled, AnythingAnywhere) {
  std::mt19937_64 random(1);
  auto* const words = reinterpret_cast<uint64_t*>(segment_->ring(1, 0));
  for (size_t i = 0; i < kRing / sizeof(uint64_t); ++i) words[i] = random();
  segment_->pair(1, 0).tail = random();
  for (int i = 0; i < 50 && failed_.empty(); ++i) take();
  ASSERT_EQ(failed_.size(), 1u);
  EXPECT_EQ(failed_[0].first, 1);
}

}  // namespace
}  // namespace ibcoll::conformance
