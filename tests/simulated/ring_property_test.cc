// SPDX-License-Identifier: BSD-3-Clause
// The pipelined ring takes the rounds that its paper says, for the paper's six distributions.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/simulated/one_call.h"
#include "tests/simulated/replay.h"

namespace ibcoll {
namespace {

using Counts = std::vector<uint64_t>;

struct Distribution {
  const char* name;
  Counts (*blocks)(uint64_t p);  // how many blocks each rank has: more of them than neighbours without data
};

Counts regular(uint64_t p) { return Counts(p, 4); }
Counts broadcast(uint64_t p) {
  Counts blocks(p, 0);
  blocks[0] = 4 * p;
  return blocks;
}
Counts spike(uint64_t p) {
  Counts blocks(p, 2);
  blocks[0] = 2 * (p - 1);
  return blocks;
}
Counts half_full(uint64_t p) {
  Counts blocks(p, 0);
  for (uint64_t i = 0; i < p; i += 2) blocks[i] = 8;
  return blocks;
}
Counts decreasing(uint64_t p) {
  Counts blocks(p);
  for (uint64_t i = 0; i < p; ++i) blocks[i] = 2 * p * (p - 1 - i) / (p - 1);
  return blocks;
}
Counts geometric(uint64_t p) {
  Counts blocks(p);
  for (uint64_t i = 1; i <= p; i *= 2)
    for (uint64_t j = 0; j < i && i - 1 + j < p; ++j)
      blocks[i - 1 + j] = static_cast<uint64_t>(8 * static_cast<double>(p) / (static_cast<double>(i) * std::log2(p)));
  return blocks;
}
constexpr Distribution kDistributions[] = {{"regular", regular},       {"broadcast", broadcast},
                                           {"spike", spike},           {"half_full", half_full},
                                           {"decreasing", decreasing}, {"geometric", geometric}};

constexpr uint64_t kBlock = 64;

OneCallResult run_ring(Counts bytes, uint64_t block, std::vector<int> node_of = {}) {
  OneCall call;
  call.params.collective = IBCOLL_ALLGATHERV;
  call.params.p = static_cast<int>(bytes.size());
  call.params.counts = std::move(bytes);
  call.algorithm = "ring_pipelined";
  call.parameter = block;
  call.bytes_per_round = block;
  call.node_of = std::move(node_of);
  return run_one_call(call);
}

// Equation 1 where all have data; section 2.3 where some have none.
uint64_t papers_rounds(const Counts& blocks) {
  const uint64_t sum = std::accumulate(blocks.begin(), blocks.end(), uint64_t{0});
  const auto empty = static_cast<uint64_t>(std::count(blocks.begin(), blocks.end(), 0));
  if (empty == 0) return sum - *std::min_element(blocks.begin(), blocks.end());
  const uint64_t full = blocks.size() - empty;
  return sum - 1 + (empty + full - 1) / full;
}

TEST(PipelinedRing, TakesThePapersRounds) {
  for (const Distribution& distribution : kDistributions)
    for (uint64_t p = 2; p <= (sweep() ? 40 : 17); ++p) {
      const Counts blocks = distribution.blocks(p);
      Counts bytes = blocks;
      for (uint64_t& n : bytes) n *= kBlock;
      EXPECT_EQ(run_ring(bytes, kBlock).rounds, static_cast<double>(papers_rounds(blocks)))
          << distribution.name << " p " << p;
    }
}

TEST(PipelinedRing, BlocksThatAreNotFullTakeNoLonger) {
  for (const Distribution& distribution : kDistributions)
    for (const uint64_t p : {2, 3, 7, 16, 29}) {
      const Counts blocks = distribution.blocks(p);
      Counts bytes = blocks;
      for (uint64_t i = 0; i < p; ++i)
        if (bytes[i] > 0) bytes[i] = (bytes[i] - 1) * kBlock + 1 + i;
      const double rounds = run_ring(bytes, kBlock).rounds;
      EXPECT_LE(rounds, static_cast<double>(papers_rounds(blocks))) << distribution.name << " p " << p;
    }
}

// Section 2.3: nothing is sent for ranks without data. A block moves p - 1 times.
TEST(PipelinedRing, EmptyBlocksAreNotSent) {
  const Counts bytes{0, 3 * kBlock, 0, 0, kBlock + 1, 0, 0};
  EXPECT_EQ(run_ring(bytes, kBlock).counters.between_nodes, (3u + 2u) * 6u);
}

// Section 2.2: however ranks lie on nodes, a block crosses N - 1 borders of nodes, or N where it comes round to the
// ranks of its node that are before its own rank.
TEST(PipelinedRing, OneRankOfANodeSendsToAnotherNode) {
  const std::vector<std::vector<int>> placements{
      {0, 1, 2, 0, 1, 2, 0, 1}, {0, 0, 0, 0, 0, 1, 1, 2}, {2, 1, 1, 0, 1, 2, 1, 3}, {0, 0, 0, 0, 0, 0, 0, 0}};
  for (const std::vector<int>& node_of : placements) {
    const auto nodes = static_cast<uint64_t>(*std::max_element(node_of.begin(), node_of.end())) + 1;
    for (const Distribution& distribution : kDistributions) {
      const Counts blocks = distribution.blocks(8);
      Counts bytes = blocks;
      for (uint64_t& n : bytes) n *= kBlock;
      const uint64_t sum = std::accumulate(blocks.begin(), blocks.end(), uint64_t{0});
      const uint64_t crossings = run_ring(bytes, kBlock, node_of).counters.between_nodes;
      EXPECT_GE(crossings, sum * (nodes - 1)) << distribution.name;
      EXPECT_LE(crossings, nodes > 1 ? sum * nodes : 0) << distribution.name;
    }
  }
}

}  // namespace
}  // namespace ibcoll
