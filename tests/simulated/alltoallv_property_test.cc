// SPDX-License-Identifier: BSD-3-Clause
// Alltoallv of short blocks: rounds of the two-phase Bruck algorithm, messages of leaders; long blocks go straight.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/simulated/one_call.h"

namespace ibcoll {
namespace {

// A message each round, beside whose start-up bytes do not count.
constexpr Time kStartUp = 1'000'000;

OneCallResult alltoallv(const char* algorithm, int p, std::vector<uint64_t> counts, uint64_t radix = 0,
                        std::vector<int> node_of = {}) {
  OneCall call;
  call.params.collective = IBCOLL_ALLTOALLV;
  call.params.p = p;
  call.params.counts = std::move(counts);
  call.algorithm = algorithm;
  call.parameter = radix;
  call.node_of = std::move(node_of);
  call.alpha_ns = call.bytes_per_round = kStartUp;
  return run_one_call(call);
}

std::vector<uint64_t> blocks(int p, uint64_t bytes) {
  return std::vector<uint64_t>(static_cast<size_t>(p) * static_cast<size_t>(p), bytes);
}

int digits(int p, int radix) {
  int count = 0;
  for (int weight = 1; weight < p; weight *= radix) ++count;
  return count;
}

// ceil(lg p) to agree on the longest block, then sizes and blocks for each digit.
TEST(TwoPhaseBruck, TakesThePapersRounds) {
  for (int p = 2; p <= 40; ++p)
    for (const int radix : {2, 3, 4, 7, 40}) {
      const int r = std::min(radix, p);
      const OneCallResult result = alltoallv("two_phase_bruck", p, blocks(p, 3), static_cast<uint64_t>(radix));
      EXPECT_NEAR(result.rounds, digits(p, 2) + 2 * digits(p, r), 0.2) << "p " << p << " radix " << radix;
    }
}

TEST(TwoPhaseBruck, NothingToSendEndsAfterTheAgreement) {
  for (const int p : {2, 5, 16})
    EXPECT_NEAR(alltoallv("two_phase_bruck", p, blocks(p, 0), 2).rounds, digits(p, 2), 0.1);
}

// A byte more than the longest short block, and it moves once instead of once per digit.
TEST(TwoPhaseBruck, LongBlocksMoveOnce) {
  const int p = 8;
  std::vector<uint64_t> counts = blocks(p, 0);
  counts[0 * p + 7] = 2048;  // distance 7: three digits in base 2
  const uint64_t moved = alltoallv("two_phase_bruck", p, counts, 2).counters.bytes;
  counts[0 * p + 7] = 2049;
  const uint64_t straight = alltoallv("two_phase_bruck", p, counts, 2).counters.bytes;
  EXPECT_GE(moved, 3 * 2048u);
  EXPECT_LT(straight, 2 * 2049u);
}

// However many ranks a node has, it sends one message to each other node, with the sizes; long blocks add one each.
TEST(PapShmDirectOfAlltoallv, ANodeSendsAMessagePerNode) {
  for (const int locals : {2, 3, 4})
    for (const int nodes : {2, 3, 5}) {
      const int p = locals * nodes;
      std::vector<int> node_of;
      for (int rank = 0; rank < p; ++rank) node_of.push_back(rank % nodes);
      std::vector<uint64_t> counts = blocks(p, 10);
      const auto messages = static_cast<uint64_t>(nodes * (nodes - 1));
      EXPECT_EQ(alltoallv("pap_shm_direct", p, counts, 0, node_of).counters.between_nodes, messages);
      counts[1] = 1'000'000;  // from rank 0 to rank 1, on another node
      EXPECT_EQ(alltoallv("pap_shm_direct", p, counts, 0, node_of).counters.between_nodes, messages + 1);
    }
}

// Each rank sends one message with sizes to each other node, and one with blocks if there are any; long ones add one
// each.
TEST(PapShmLanesOfAlltoallv, EmptyRowsAreSizesAlone) {
  for (const int locals : {2, 3, 4})
    for (const int nodes : {2, 3, 5}) {
      const int p = locals * nodes;
      std::vector<int> node_of;
      for (int rank = 0; rank < p; ++rank) node_of.push_back(rank % nodes);
      std::vector<uint64_t> counts = blocks(p, 0);
      const auto rows = static_cast<uint64_t>(p * (nodes - 1));
      EXPECT_EQ(alltoallv("pap_shm_lanes", p, counts, 0, node_of).counters.between_nodes, rows);
      counts[1] = 10;  // from rank 0 to rank 1, on another node
      EXPECT_EQ(alltoallv("pap_shm_lanes", p, counts, 0, node_of).counters.between_nodes, rows + 1);
      counts[2 % nodes == 0 ? 3 : 2] = 1'000'000;
      EXPECT_EQ(alltoallv("pap_shm_lanes", p, counts, 0, node_of).counters.between_nodes, rows + 2);
      EXPECT_EQ(alltoallv("pap_shm_lanes", p, blocks(p, 10), 0, node_of).counters.between_nodes, 2 * rows);
    }
}

}  // namespace
}  // namespace ibcoll
