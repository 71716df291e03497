// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_run/placement.h"

#include <gtest/gtest.h>

#include <numeric>

#include "tools/ibcoll_run/core_binding.h"

namespace ibcoll::run {
namespace {

std::string shown(const Result<std::vector<HostRanks>>& placed) {
  if (!placed.ok()) return "error: " + placed.status().text();
  std::string text;
  for (const HostRanks& ranks : placed.value()) {
    text += text.empty() ? "" : " ";
    text += fmt::format("{}:{}+{}", ranks.host, ranks.first_rank, ranks.count);
  }
  return text;
}

TEST(Placement, SlotsAreFilledInOrder) {
  const std::vector<HostEntry> hosts = {{"a", 4}, {"b", 2}, {"c", 3}};
  EXPECT_EQ(shown(place_on_hosts(hosts, std::nullopt)), "a:0+4 b:4+2 c:6+3");
  EXPECT_EQ(shown(place_on_hosts(hosts, 5)), "a:0+4 b:4+1");
  EXPECT_EQ(shown(place_on_hosts(hosts, 9)), "a:0+4 b:4+2 c:6+3");
  EXPECT_EQ(shown(place_on_hosts(hosts, 10)),
            "error: -n 10: the hosts offer 9 slots; give them more, as in --host a:10");
}

TEST(Placement, MoreSlotsThanAJobHasRanks) {
  const std::vector<HostEntry> hosts(2100, {"a", 1 << 20});
  EXPECT_EQ(shown(place_on_hosts(hosts, std::nullopt)),
            "error: the hosts offer 2202009600 slots, and a job has 1048576 ranks at most; say how many by -n");
  EXPECT_EQ(shown(place_on_hosts(hosts, 3)), "a:0+3");
}

TEST(Placement, HostsWithoutSlotsShareTheRest) {
  const std::vector<HostEntry> hosts = {{"a", std::nullopt}, {"b", 2}, {"c", std::nullopt}};
  EXPECT_EQ(shown(place_on_hosts(hosts, std::nullopt)), "a:0+1 b:1+2 c:3+1");
  EXPECT_EQ(shown(place_on_hosts(hosts, 9)), "a:0+4 b:4+2 c:6+3");
  EXPECT_EQ(shown(place_on_hosts(hosts, 1)), "b:0+1");
}

TEST(Placement, EmulatedNodesAreConsecutiveAndEven) {
  for (int ranks = 1; ranks <= 20; ++ranks) {
    for (int nodes = 1; nodes <= ranks; ++nodes) {
      const std::vector<int> sizes = split_evenly(ranks, nodes);
      EXPECT_EQ(std::accumulate(sizes.begin(), sizes.end(), 0), ranks);
      EXPECT_LE(sizes.front() - sizes.back(), 1);
      EXPECT_TRUE(std::is_sorted(sizes.rbegin(), sizes.rend()));
      const auto texts = emulated_nodes(ranks, nodes);
      ASSERT_TRUE(texts.ok());
      EXPECT_EQ(texts.value().size(), static_cast<size_t>(ranks));
      EXPECT_EQ(texts.value().back(), fmt::format("emulated-{}", nodes - 1));
    }
  }
  EXPECT_EQ(split_evenly(5, 2), (std::vector<int>{3, 2}));
  EXPECT_FALSE(emulated_nodes(3, 4).ok());
}

TEST(CoreBinding, EmulatedNodesShareCoresOut) {
  using Shares = std::vector<CoreBinding::Cores>;
  const auto shares = [](int ranks, int nodes, int cores) {
    return CoreBinding::share_out(ranks, emulated_nodes(ranks, nodes).value(), cores);
  };
  EXPECT_EQ(shares(6, 2, 4), (Shares{{0, 2}, {0, 2}, {0, 2}, {2, 2}, {2, 2}, {2, 2}})) << "several cores each";
  EXPECT_EQ(shares(5, 2, 2), (Shares{{0, 1}, {0, 1}, {0, 1}, {1, 1}, {1, 1}})) << "one core each";
  EXPECT_EQ(shares(6, 4, 2), (Shares{{0, 1}, {0, 1}, {1, 1}, {1, 1}, {0, 1}, {1, 1}}))
      << "the larger nodes on both cores";
  EXPECT_EQ(shares(4, 2, 4), (Shares{{0, 1}, {1, 1}, {2, 1}, {3, 1}})) << "a core for each rank";
  EXPECT_EQ(shares(6, 3, 2), Shares{}) << "half a core each";
  EXPECT_EQ(shares(6, 1, 2), Shares{}) << "one node is no emulation";
  EXPECT_EQ(CoreBinding::share_out(6, {}, 2), Shares{});
}

}  // namespace
}  // namespace ibcoll::run
