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
    const int first = ranks.ranks.front();
    const auto count = static_cast<int>(ranks.ranks.size());
    if (ranks.ranks.back() - first + 1 == count)
      text += fmt::format("{}:{}+{}", ranks.host, first, count);
    else
      text += fmt::format("{}:{}", ranks.host, fmt::join(ranks.ranks, ","));
  }
  return text;
}

TEST(Placement, SlotsAreFilledInOrder) {
  const std::vector<HostEntry> hosts = {{"a", 4, {}}, {"b", 2, {}}, {"c", 3, {}}};
  EXPECT_EQ(shown(place_on_hosts(hosts, {.ranks = {}})), "a:0+4 b:4+2 c:6+3");
  EXPECT_EQ(shown(place_on_hosts(hosts, {.ranks = 5})), "a:0+4 b:4+1");
  EXPECT_EQ(shown(place_on_hosts(hosts, {.ranks = 9})), "a:0+4 b:4+2 c:6+3");
  EXPECT_EQ(shown(place_on_hosts(hosts, {.ranks = 10})),
            "error: -n 10: the hosts offer 9 slots; give them more, as in --host a:10, or say --oversubscribe");
}

TEST(Placement, MoreSlotsThanAJobHasRanks) {
  const std::vector<HostEntry> hosts(2100, {"a", 1 << 20, {}});
  EXPECT_EQ(shown(place_on_hosts(hosts, {.ranks = {}})),
            "error: the hosts offer 2202009600 slots, and a job has 1048576 ranks at most; say how many by -n");
  EXPECT_EQ(shown(place_on_hosts(hosts, {.ranks = 3})), "a:0+3");
}

TEST(Placement, HostsWithoutSlotsShareTheRest) {
  const std::vector<HostEntry> hosts = {{"a", {}, {}}, {"b", 2, {}}, {"c", {}, {}}};
  EXPECT_EQ(shown(place_on_hosts(hosts, {.ranks = {}})), "a:0+1 b:1+2 c:3+1");
  EXPECT_EQ(shown(place_on_hosts(hosts, {.ranks = 9})), "a:0+4 b:4+2 c:6+3");
  EXPECT_EQ(shown(place_on_hosts(hosts, {.ranks = 1})), "b:0+1");
}

TEST(Placement, InTurn) {
  const std::vector<HostEntry> hosts = {{"a", 4, {}}, {"b", 2, {}}, {"c", {}, {}}};
  EXPECT_EQ(shown(place_on_hosts(hosts, {.ranks = {}, .in_turn = true})), "a:0,3,6 b:1,4 c:2,5");
  EXPECT_EQ(shown(place_on_hosts(hosts, {.ranks = 4, .in_turn = true})), "a:0,3 b:1+1 c:2+1");
  EXPECT_EQ(shown(place_on_hosts(hosts, {.ranks = 2, .in_turn = true})), "a:0+1 b:1+1");
  EXPECT_EQ(shown(place_on_hosts({{"a", 1, {}}, {"b", 1, {}}}, {.ranks = 3, .in_turn = true, .oversubscribe = true})),
            "a:0,2 b:1+1");
}

TEST(Placement, SoManyOnEachHost) {
  const std::vector<HostEntry> hosts = {{"a", 4, {}}, {"b", {}, {}}};
  EXPECT_EQ(shown(place_on_hosts(hosts, {.per_host = 2})), "a:0+2 b:2+2");
  EXPECT_EQ(shown(place_on_hosts(hosts, {.ranks = 3, .per_host = 2})), "a:0+2 b:2+1");
  EXPECT_EQ(shown(place_on_hosts(hosts, {.per_host = 2, .in_turn = true})), "a:0,2 b:1,3");
  EXPECT_EQ(shown(place_on_hosts(hosts, {.ranks = 5, .per_host = 2})),
            "error: -n 5: 2 hosts with 2 ranks each (-N) take 4");
  EXPECT_EQ(shown(place_on_hosts(hosts, {.per_host = 5})),
            "error: -N 5: host a offers 4 slots; --oversubscribe lets it take more");
  EXPECT_EQ(shown(place_on_hosts(hosts, {.per_host = 5, .oversubscribe = true})), "a:0+5 b:5+5");
}

TEST(Placement, SoManyOnEachHostIsTheMost) {
  const std::vector<HostEntry> two = {{"a", {}, {}}, {"b", {}, {}}};
  EXPECT_EQ(shown(place_on_hosts(two, {.ranks = 5, .per_host = 2, .oversubscribe = true})),
            "error: -n 5: 2 hosts with 2 ranks each (-N) take 4");
  const std::vector<HostEntry> limited = {{"a", 2, 3}, {"b", {}, 3}};
  EXPECT_EQ(shown(place_on_hosts(limited, {.per_host = 3, .oversubscribe = true})), "a:0+3 b:3+3");
  for (const bool oversubscribe : {false, true})
    EXPECT_EQ(shown(place_on_hosts(limited, {.per_host = 4, .oversubscribe = oversubscribe})),
              "error: -N 4: host a takes 3 ranks at most (max_slots)");
  EXPECT_EQ(shown(place_on_hosts({{"b", {}, 3}}, {.per_host = 4})),
            "error: -N 4: host b takes 3 ranks at most (max_slots)");
  EXPECT_EQ(shown(place_on_hosts(limited, {.per_host = 3})),
            "error: -N 3: host a offers 2 slots; --oversubscribe lets it take more");
}

TEST(Placement, MoreRanksThanSlots) {
  const std::vector<HostEntry> hosts = {{"a", 2, {}}, {"b", 2, 3}, {"c", 1, {}}};
  EXPECT_EQ(shown(place_on_hosts(hosts, {.ranks = 5, .oversubscribe = true})), "a:0+2 b:2+2 c:4+1");
  EXPECT_EQ(shown(place_on_hosts(hosts, {.ranks = 10, .oversubscribe = true})), "a:0+4 b:4+3 c:7+3");
  EXPECT_EQ(shown(place_on_hosts({{"a", 2, 3}}, {.ranks = 4, .oversubscribe = true})),
            "error: -n 4: the hosts take 3 ranks at most (max_slots)");
  EXPECT_EQ(shown(place_on_hosts({{"a", {}, 2}, {"b", {}, {}}}, {.ranks = 7})), "a:0+2 b:2+5");
}

TEST(Placement, ManyHosts) {
  std::vector<HostEntry> hosts;
  for (int i = 0; i < 200'000; ++i) hosts.push_back({std::to_string(i), 4, {}});
  EXPECT_EQ(shown(place_on_hosts(hosts, {.ranks = 5})), "0:0+4 1:4+1");
}

TEST(Placement, EmulatedNodesInTurn) {
  EXPECT_EQ(emulated_nodes(5, 2, true).value(),
            (std::vector<std::string>{"emulated-0", "emulated-1", "emulated-0", "emulated-1", "emulated-0"}));
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

using Shares = std::vector<CoreBinding::Cores>;

Shares shares(int ranks, int nodes, int cores, Binding wanted = {}) {
  const auto texts = nodes == 0 ? std::vector<std::string>() : emulated_nodes(ranks, nodes).value();
  const auto result = CoreBinding::share_out(wanted, ranks, texts, cores);
  return result.ok() ? result.value() : Shares{{-1, -1}};
}

TEST(CoreBinding, EmulatedNodesShareCoresOut) {
  EXPECT_EQ(shares(6, 2, 4), (Shares{{0, 2}, {0, 2}, {0, 2}, {2, 2}, {2, 2}, {2, 2}})) << "several cores each";
  EXPECT_EQ(shares(5, 2, 2), (Shares{{0, 1}, {0, 1}, {0, 1}, {1, 1}, {1, 1}})) << "one core each";
  EXPECT_EQ(shares(6, 4, 2), (Shares{{0, 1}, {0, 1}, {1, 1}, {1, 1}, {0, 1}, {1, 1}}))
      << "the larger nodes on both cores";
  EXPECT_EQ(shares(4, 2, 4), (Shares{{0, 1}, {1, 1}, {2, 1}, {3, 1}})) << "a core for each rank";
  EXPECT_EQ(shares(6, 3, 2), Shares{}) << "half a core each";
  EXPECT_EQ(shares(6, 1, 2), Shares{}) << "one node is no emulation";
  EXPECT_EQ(shares(6, 0, 2), Shares{});
  EXPECT_EQ(CoreBinding::share_out({}, 4, emulated_nodes(4, 2, true).value(), 2).value(),
            (Shares{{0, 1}, {1, 1}, {0, 1}, {1, 1}}))
      << "nodes whose ranks are not consecutive";
}

TEST(CoreBinding, OnlyWhereTheRanksFillTheMachine) {
  EXPECT_EQ(shares(4, 0, 4), (Shares{{0, 1}, {1, 1}, {2, 1}, {3, 1}}));
  EXPECT_EQ(shares(3, 0, 4), Shares{}) << "another job may be bound to the same cores";
  EXPECT_EQ(shares(1, 0, 4), Shares{}) << "its threads would share one core";
  EXPECT_EQ(shares(2, 2, 4), Shares{});
}

TEST(CoreBinding, WhatIsAskedFor) {
  const Binding one{Binding::To::kCore, 1, false};
  const Binding two{Binding::To::kCore, 2, false};
  EXPECT_EQ(shares(3, 0, 4, one), (Shares{{0, 1}, {1, 1}, {2, 1}}));
  EXPECT_EQ(shares(2, 0, 4, two), (Shares{{0, 2}, {2, 2}}));
  EXPECT_EQ(shares(6, 2, 2, one), (Shares{{0, 1}, {0, 1}, {0, 1}, {1, 1}, {1, 1}, {1, 1}}));
  EXPECT_EQ(shares(5, 0, 4, one), (Shares{{-1, -1}})) << "an error";
  EXPECT_EQ(shares(3, 0, 4, two), (Shares{{-1, -1}})) << "an error";
}

}  // namespace
}  // namespace ibcoll::run
