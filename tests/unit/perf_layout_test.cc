// SPDX-License-Identifier: BSD-3-Clause
#include "perf/ibcoll_perf/layout.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace ibcoll::perf {
namespace {

Layout layout_of(ibcoll_collective_t collective, uint64_t bytes, int rank, int size, bool in_place, bool hard) {
  return make_layout({collective, bytes, rank, size, 0, in_place, hard});
}

void expect_within(const std::vector<Block>& blocks, uint64_t extent) {
  uint64_t end = 0;
  for (const Block& block : blocks) {
    EXPECT_GE(block.offset, end);
    end = block.offset + block.bytes;
  }
  EXPECT_LE(end, extent);
}

// What one rank sends to another is what the other expects, in every collective that has blocks.
TEST(Layout, SendersAndReceiversAgree) {
  for (const auto collective : {IBCOLL_ALLGATHER, IBCOLL_ALLGATHERV, IBCOLL_ALLTOALL, IBCOLL_ALLTOALLV}) {
    for (const bool in_place : {false, true}) {
      for (const bool hard : {false, true}) {
        for (const int size : {1, 2, 5, 16}) {
          std::vector<Layout> ranks;
          for (int rank = 0; rank < size; ++rank) {
            ranks.push_back(layout_of(collective, 10, rank, size, in_place, hard));
          }
          for (const Layout& receiver : ranks) {
            expect_within(receiver.recv, receiver.recv_bytes);
            expect_within(receiver.send, in_place ? receiver.recv_bytes : receiver.send_bytes);
            for (const Block& block : receiver.recv) {
              const auto& sent = ranks[static_cast<size_t>(block.source)].send;
              const auto match = std::find_if(sent.begin(), sent.end(), [&](const Block& candidate) {
                return candidate.destination == block.destination && candidate.source == block.source;
              });
              ASSERT_NE(match, sent.end());
              EXPECT_EQ(match->bytes, block.bytes);
            }
          }
        }
      }
    }
  }
}

TEST(Layout, HardOnesHaveEmptyLargeAndUnalignedBlocks) {
  const Layout layout = layout_of(IBCOLL_ALLTOALLV, 64, 0, 16, false, true);
  EXPECT_NE(std::find(layout.recv_counts.begin(), layout.recv_counts.end(), 0u), layout.recv_counts.end());
  EXPECT_EQ(*std::max_element(layout.recv_counts.begin(), layout.recv_counts.end()), 128u);
  EXPECT_TRUE(std::any_of(layout.recv_displacements.begin(), layout.recv_displacements.end(),
                          [](uint64_t displacement) { return displacement % 8 != 0; }));
}

TEST(Layout, PlainOnesArePacked) {
  const Layout layout = layout_of(IBCOLL_ALLGATHERV, 100, 2, 8, false, false);
  uint64_t total = 0;
  for (size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(layout.recv_displacements[i], total);
    EXPECT_GT(layout.recv_counts[i], 0u);
    total += layout.recv_counts[i];
  }
  EXPECT_EQ(layout.recv_bytes, total);
  EXPECT_EQ(layout.send_bytes, layout.recv_counts[2]);
}

TEST(Layout, InPlaceAlltoallvIsSymmetric) {
  const Layout layout = layout_of(IBCOLL_ALLTOALLV, 100, 3, 9, true, true);
  EXPECT_EQ(layout.send_counts, layout.recv_counts);
  EXPECT_EQ(layout.send_displacements, layout.recv_displacements);
  EXPECT_EQ(layout.send_bytes, 0u);
}

TEST(Layout, OnlyTheRootOfABcastSends) {
  EXPECT_EQ(make_layout({IBCOLL_BCAST, 8, 1, 4, 1, false, true}).send.size(), 1u);
  const Layout other = make_layout({IBCOLL_BCAST, 8, 0, 4, 1, false, true});
  EXPECT_TRUE(other.send.empty());
  EXPECT_EQ(other.recv[0].source, 1);
}

}  // namespace
}  // namespace ibcoll::perf
