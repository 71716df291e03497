// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/topology.h"

#include <gtest/gtest.h>

namespace ibcoll {
namespace {

CpuShare share(uint64_t cpus, double quota = 1e9) {
  CpuShare share;
  share.cpus[0] = cpus;
  share.quota = quota;
  return share;
}

TEST(Topology, NodesAreNumberedByTheirLowestRank) {
  EXPECT_EQ(number_nodes({"b", "a", "b", "c", "a"}), (std::vector<int>{0, 1, 0, 2, 1}));
  EXPECT_EQ(number_nodes({"x"}), std::vector<int>{0});
  EXPECT_EQ(number_nodes({"", "", ""}), (std::vector<int>{0, 0, 0}));
}

TEST(Topology, RanksThatShareCoresAreCounted) {
  EXPECT_EQ(ranks_per_core({share(0b11), share(0b11)}), 1.0);
  EXPECT_EQ(ranks_per_core({share(0b11), share(0b11), share(0b11), share(0b11)}), 2.0);
  EXPECT_EQ(ranks_per_core({share(0b01), share(0b10)}), 1.0);  // bound, each to its own
  EXPECT_EQ(ranks_per_core({share(0b01), share(0b01)}), 2.0);  // bound to the same
  EXPECT_EQ(ranks_per_core({share(0xFF)}), 1.0);               // never less than one
}

TEST(Topology, AQuotaIsWorthCores) {
  EXPECT_EQ(ranks_per_core({share(0xFF, 2.0), share(0xFF, 2.0), share(0xFF, 2.0), share(0xFF, 2.0)}), 2.0);
  EXPECT_EQ(ranks_per_core({share(0b11, 0.5)}), 2.0);
}

TEST(Topology, ThisProcessHasACoreAndAnIdentity) {
  const CpuShare mine = cpu_share();
  uint64_t any = 0;
  for (const uint64_t cpus : mine.cpus) any |= cpus;
  EXPECT_NE(any, 0u);
  EXPECT_GT(mine.quota, 0.0);
  EXPECT_FALSE(node_identity().empty());
  EXPECT_EQ(node_identity(), node_identity());
}

}  // namespace
}  // namespace ibcoll
