// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/engine/trace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

namespace ibcoll {
namespace {

TEST(TraceBuffer, KeepsTheLastCallsInOrderAndCountsTheOthers) {
  TraceBuffer buffer(4);
  EXPECT_EQ(buffer.kept(), 0U);
  for (uint32_t op = 1; op <= 11; ++op) {
    TracedCall call;
    call.op = op;
    buffer.add(call);
    EXPECT_EQ(buffer.kept(), std::min<uint64_t>(op, 4));
    EXPECT_EQ(buffer.dropped(), op > 4 ? op - 4 : 0);
    for (uint64_t i = 0; i < buffer.kept(); ++i) EXPECT_EQ(buffer[i].op, op - buffer.kept() + 1 + i);
  }
}

// Each call with as many peers as its number modulo 4; a call of which some were replaced is cut.
TEST(TraceBuffer, PeersBelongToTheirCallsAndThoseOfTheLastAreKept) {
  TraceBuffer buffer(4, 5);
  for (int32_t call = 1; call <= 11; ++call) {
    buffer.add({});
    for (int32_t i = 0; i < call % 4; ++i) {
      TracedPeer peer;
      peer.job_rank = 10 * call + i;
      buffer.add_peer(peer);
    }
    std::vector<int32_t> kept;
    for (uint64_t i = 0; i < buffer.peers_kept(); ++i) {
      EXPECT_EQ(buffer.peer(i).call, static_cast<uint32_t>(buffer.peer(i).job_rank / 10));
      kept.push_back(buffer.peer(i).job_rank);
    }
    EXPECT_TRUE(std::is_sorted(kept.begin(), kept.end()));
    EXPECT_LE(kept.size(), 5U);
    for (int32_t other = 1; other <= call; ++other) {
      const auto there = std::count_if(kept.begin(), kept.end(), [&](int32_t peer) { return peer / 10 == other; });
      EXPECT_EQ(buffer.cut(static_cast<uint32_t>(other)) && there > 0, there > 0 && there < other % 4)
          << other << " of " << call;
    }
    EXPECT_EQ(buffer.number(buffer.kept() - 1), static_cast<uint32_t>(call));
  }
  EXPECT_EQ(buffer.peers_kept(), 5U);
}

// Lists end with the last call that has them: those of the last calls have room, however many there were.
TEST(TraceBuffer, SizesAreKeptAsLongAsTheirCalls) {
  TraceBuffer buffer(3);
  const uint64_t most = TraceLists::kMostBytes / sizeof(uint64_t) / 5;
  std::vector<uint64_t> sizes(most, 1);
  for (uint64_t number = 1; number <= 9; ++number) {
    sizes[0] = number / 2;  // two calls in a row have the same
    TracedCall call;
    call.counts = buffer.lists().keep_counts(sizes);
    ASSERT_NE(call.counts, TraceLists::kNone) << number;
    buffer.add(call);
    for (uint64_t i = 0; i < buffer.kept(); ++i)
      EXPECT_EQ(buffer.lists().counts(buffer[i].counts)[0], (number - buffer.kept() + 1 + i) / 2);
  }
  std::vector<uint32_t> room;
  for (sizes[0] = 1000; room.empty() || room.back() != TraceLists::kNone; ++sizes[0])
    room.push_back(buffer.lists().keep_counts(sizes));
  EXPECT_EQ(room.size(), 3u) << "two of five are in use";
}

TEST(TraceBuffer, AWaitIsNotedInItsCallWhileThatIsKept) {
  TraceBuffer buffer(3);
  for (int64_t arrival = 1; arrival <= 5; ++arrival) {
    TracedCall call;
    call.arrival_ns = arrival;
    buffer.add(call);
  }
  buffer.note_wait(buffer.last() - 1, 10);
  buffer.note_wait(buffer.last() - 3, 10);  // it is gone
  EXPECT_EQ(buffer[0].wait_ns, TracedCall::kNever);
  EXPECT_EQ(buffer[1].wait_ns, 10 - 4);
  EXPECT_EQ(buffer[2].wait_ns, TracedCall::kNever);
}

TEST(TraceBuffer, KeepsPeersWhereThereIsRoom) {
  EXPECT_FALSE(TraceBuffer(2).keeps_peers());
  EXPECT_TRUE(TraceBuffer(2, 1).keeps_peers());
}

TEST(TraceBuffer, BytesAreThoseOfABlock) {
  std::array<std::byte, 64> memory{};
  const std::array<uint64_t, 4> counts = {8, 0, 16, 0};
  Args args;
  args.collective = IBCOLL_BCAST;
  args.bytes = 12;
  EXPECT_EQ(traced_bytes(args, 4), 12U);
  args.collective = IBCOLL_ALLTOALL;
  args.recv = {memory.data(), 7, nullptr, nullptr};
  EXPECT_EQ(traced_bytes(args, 4), 7U);
  args.collective = IBCOLL_ALLTOALLV;
  args.recv = {memory.data(), 1, counts.data(), counts.data()};
  EXPECT_EQ(traced_bytes(args, 4), 6U);
  EXPECT_EQ(traced_counts(args), counts.data());
  args.collective = IBCOLL_GATHERV;  // only the root knows the others' blocks
  EXPECT_EQ(traced_bytes(args, 4), 12U);
  args.recv = {};
  EXPECT_EQ(traced_counts(args), nullptr);
  const std::array<uint64_t, 4> sent = {1, 2, 3, 4};
  args.collective = IBCOLL_ALLTOALLV;
  args.send = {memory.data(), 1, sent.data(), sent.data()};
  args.recv = {memory.data(), 1, counts.data(), counts.data()};
  EXPECT_EQ(traced_counts(args), sent.data());
  args.in_place = true;  // what is sent has the sizes of what is received
  EXPECT_EQ(traced_counts(args), counts.data());
}

}  // namespace
}  // namespace ibcoll
