// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/collectives/allgather/ring_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <string>

#include "runtime/collectives/framework/registry.h"
#include "runtime/sim/random.h"

namespace ibcoll {
namespace {

std::vector<int> order_of(const std::vector<int>& node_of, const std::vector<uint64_t>& counts) {
  std::vector<int> all(node_of.size()), order(node_of.size());
  std::iota(all.begin(), all.end(), 0);
  const std::vector<uint64_t> displacements(counts.size(), 0);
  allgather::ring_order(Placement(all, node_of), Blocks{nullptr, 0, counts.data(), displacements.data()}, order);
  return order;
}

TEST(RingOrder, RanksWithDataAreEquidistant) {
  EXPECT_EQ(order_of({0, 1, 2, 3, 4, 5}, {7, 7, 0, 0, 0, 0}), (std::vector<int>{2, 3, 0, 4, 5, 1}));
  EXPECT_EQ(order_of({0, 0, 0, 0, 0, 0}, {7, 7, 0, 0, 0, 0}), (std::vector<int>{2, 3, 0, 4, 5, 1}));
  EXPECT_EQ(order_of({0, 1, 2, 3, 4}, {0, 1, 1, 1, 0}), (std::vector<int>{1, 0, 2, 4, 3}));
  EXPECT_EQ(order_of({0, 1, 2}, {0, 0, 0}), (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(order_of({0, 1, 2}, {1, 1, 1}), (std::vector<int>{0, 1, 2}));
}

TEST(RingOrder, RanksOfANodeAreNeighboursWithDataLast) {
  sim::Random random(1);
  for (int run = 0; run < 2000; ++run) {
    const size_t p = 1 + random.below(20);
    const uint64_t nodes = 2 + random.below(5), zeros = 1 + random.below(4);
    std::vector<int> node_of(p);
    std::vector<uint64_t> counts(p);
    for (size_t i = 0; i < p; ++i) node_of[i] = static_cast<int>(random.below(nodes)), counts[i] = random.below(zeros);
    const std::vector<int> order = order_of(node_of, counts);
    std::vector<int> sorted = order;
    std::sort(sorted.begin(), sorted.end());
    int borders = 0;
    for (size_t i = 0; i < p; ++i) {
      ASSERT_EQ(sorted[i], static_cast<int>(i));
      const auto rank = static_cast<size_t>(order[i]), next = static_cast<size_t>(order[(i + 1) % p]);
      borders += node_of[rank] != node_of[next];
    }
    const size_t used = std::set<int>(node_of.begin(), node_of.end()).size();
    ASSERT_EQ(borders, used == 1 ? 0 : static_cast<int>(used));
    for (size_t i = 0; used > 1 && i + 1 < p; ++i) {
      const auto rank = static_cast<size_t>(order[i]), next = static_cast<size_t>(order[i + 1]);
      ASSERT_TRUE(node_of[rank] != node_of[next] || counts[rank] == 0 || counts[next] > 0);
    }
  }
}

// Section 2.4 of the paper.
TEST(RingOrder, TheBlockSizeIsThePapers) {
  const Algorithm& ring = *find_algorithm(IBCOLL_ALLGATHERV, "ring_pipelined");
  CostModel model;
  model.alpha_us = 2, model.beta_us = 8e-5, model.cpu_us = 0;
  Shape s;
  s.p = s.nodes = 30;
  s.bytes = 1 << 20, s.total = 30 << 20;
  EXPECT_EQ(ring.choose(s, model), s.bytes) << "a regular problem";
  s.bytes = s.total = 32 << 20, s.empty_blocks = 29;
  EXPECT_NEAR(static_cast<double>(ring.choose(s, model)), std::sqrt((32 << 20) * 2 / 8e-5 / 28), 1) << "a broadcast";
  s.bytes = 2 << 20, s.total = 30 << 20, s.empty_blocks = 15;
  EXPECT_NEAR(static_cast<double>(ring.choose(s, model)), std::sqrt((30 << 20) * 2 / 8e-5 / (22.5 - 1 + 1)), 1);
  const Algorithm& plain = *find_algorithm(IBCOLL_ALLGATHERV, "ring");
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{1}, uint64_t{500}, uint64_t{50000}, uint64_t{1} << 30})
    for (const int empty : {0, 1, 10, 29}) {
      s.bytes = bytes, s.empty_blocks = empty, s.total = bytes * static_cast<uint64_t>(30 - empty);
      s.parameter = ring.choose(s, model);
      EXPECT_LE(ring.cost_us(s, model), plain.cost_us(s, model) * 1.001) << bytes << " empty " << empty;
    }
}

}  // namespace
}  // namespace ibcoll
