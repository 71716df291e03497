// SPDX-License-Identifier: BSD-3-Clause
// The ring through shared windows sends one message per rank and node, not one per rank and rank.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/simulated/one_call.h"

namespace ibcoll {
namespace {

uint64_t messages_between_nodes(std::vector<int> node_of, std::vector<uint64_t> counts, uint64_t area_bytes) {
  OneCall call;
  call.params.collective = IBCOLL_ALLGATHERV;
  call.params.p = static_cast<int>(counts.size());
  call.params.counts = std::move(counts);
  call.algorithm = "shm_ring";
  call.parameter = 1 << 20;  // no message is cut
  call.node_of = std::move(node_of);
  call.area_bytes = area_bytes;
  return run_one_call(call).counters.between_nodes;
}

TEST(ShmRing, ARankSendsAMessagePerNode) {
  for (const uint64_t locals : {2, 4, 8})
    for (const uint64_t nodes : {2, 3, 4, 8}) {
      std::vector<int> node_of;
      for (uint64_t rank = 0; rank < locals * nodes; ++rank) node_of.push_back(static_cast<int>(rank / locals));
      const std::vector<uint64_t> counts(node_of.size(), 1000);
      EXPECT_EQ(messages_between_nodes(node_of, counts, 65536), locals * nodes * (nodes - 1));
    }
}

// The emptiest node has one rank: one ring, whose messages carry all blocks of a node.
TEST(ShmRing, BlocksOfAFullerNodeTravelTogether) {
  const std::vector<int> node_of{0, 0, 0, 0, 1, 2, 2};
  EXPECT_EQ(messages_between_nodes(node_of, std::vector<uint64_t>(7, 100), 65536), 3u * 2u);
  EXPECT_EQ(messages_between_nodes(node_of, {100, 0, 0, 5, 0, 0, 0}, 65536), 2u) << "empty messages are not sent";
}

TEST(ShmRing, BlocksBeyondTheWindowMoveInRounds) {
  const std::vector<int> node_of{0, 0, 1, 1, 2, 2};
  // Three blocks share an area of 3072 bytes: 1024 bytes of each in a round.
  EXPECT_EQ(messages_between_nodes(node_of, std::vector<uint64_t>(6, 1024), 3072), 6u * 2u);
  EXPECT_EQ(messages_between_nodes(node_of, std::vector<uint64_t>(6, 1025), 3072), 2 * 6u * 2u);
  EXPECT_EQ(messages_between_nodes(node_of, {3072, 0, 0, 0, 0, 0}, 3072), 2u) << "no room for empty blocks";
}

}  // namespace
}  // namespace ibcoll
