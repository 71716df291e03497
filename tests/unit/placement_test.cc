// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/comm/placement.h"

#include <gtest/gtest.h>

namespace ibcoll {
namespace {

std::vector<int> ranks_of(const Placement& placement, int node) {
  const std::span<const int> ranks = placement.ranks_of(node);
  return {ranks.begin(), ranks.end()};
}

TEST(TeamPlacement, NodesAreNumberedByTheirLowestTeamRank) {
  // Job ranks 0..5 on nodes 7, 2, 7, 2, 4, 2; the team is 5, 0, 4, 1, 2.
  const Placement placement({5, 0, 4, 1, 2}, {7, 2, 7, 2, 4, 2});
  EXPECT_EQ(placement.size(), 5);
  EXPECT_EQ(placement.node_count(), 3);
  EXPECT_EQ(ranks_of(placement, 0), (std::vector<int>{0, 3}));
  EXPECT_EQ(ranks_of(placement, 1), (std::vector<int>{1, 4}));
  EXPECT_EQ(ranks_of(placement, 2), (std::vector<int>{2}));
  for (int node = 0; node < 3; ++node)
    for (const int rank : placement.ranks_of(node)) EXPECT_EQ(placement.node_of(rank), node);
  EXPECT_EQ(placement.job_rank(2), 4);
  EXPECT_EQ(placement.fewest_local(), 1);
  EXPECT_EQ(placement.most_local(), 2);
}

TEST(TeamPlacement, OfNobodyAndOfOne) {
  EXPECT_EQ(Placement().size(), 0);
  EXPECT_EQ(Placement().node_count(), 0);
  const Placement alone({3}, {0, 0, 0, 9});
  EXPECT_EQ(alone.node_count(), 1);
  EXPECT_EQ(ranks_of(alone, 0), (std::vector<int>{0}));
}

}  // namespace
}  // namespace ibcoll
