// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_run/allgather_series.h"

#include <gtest/gtest.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bootstrap/rendezvous_protocol.h"

namespace ibcoll::run {
namespace {

using Hosts = std::vector<std::string>;

std::string give(AllgatherSeries& exchange, int rank, std::string_view blob) {
  return exchange.give(rank, std::as_bytes(std::span(blob)));
}

TEST(AllgatherSeries, GathersInRankOrderAgainAndAgain) {
  const Hosts hosts(3, "a");
  AllgatherSeries exchange(hosts);
  for (int round = 0; round < 3; ++round) {
    EXPECT_FALSE(exchange.waited_for());
    EXPECT_EQ(give(exchange, 2, "cc"), "");
    EXPECT_TRUE(exchange.waited_for());
    EXPECT_EQ(give(exchange, 0, "aa"), "");
    EXPECT_FALSE(exchange.complete());
    EXPECT_EQ(exchange.missing(), "rank 1 has not come");
    EXPECT_EQ(give(exchange, 1, "bb"), "");
    ASSERT_TRUE(exchange.complete());
    EXPECT_EQ(*exchange.take(), "aabbcc");
  }
}

TEST(AllgatherSeries, EmptyBlobs) {
  const Hosts hosts(2, "a");
  AllgatherSeries exchange(hosts);
  EXPECT_EQ(give(exchange, 0, ""), "");
  EXPECT_EQ(give(exchange, 1, ""), "");
  ASSERT_TRUE(exchange.complete());
  EXPECT_EQ(*exchange.take(), "");
}

TEST(AllgatherSeries, ARankThatLeftFailsTheRoundItIsMissingIn) {
  const Hosts hosts(3, "a");
  AllgatherSeries exchange(hosts);
  EXPECT_EQ(give(exchange, 0, "a"), "");
  EXPECT_EQ(exchange.leave(1, "rank 1 died"), "rank 1 died and took no part in this exchange");
  EXPECT_EQ(exchange.take_waiting(), std::vector<int>{0});
  EXPECT_EQ(give(exchange, 2, "c"), "rank 1 died and took no part in this exchange");
}

TEST(AllgatherSeries, ARankMayLeaveOnceItHasGiven) {
  const Hosts hosts(2, "a");
  AllgatherSeries exchange(hosts);
  EXPECT_EQ(give(exchange, 1, "b"), "");
  EXPECT_EQ(exchange.leave(1, "rank 1 ended"), "");
  EXPECT_EQ(exchange.leave(1, "a later reason"), "");
  EXPECT_EQ(give(exchange, 0, "a"), "");
  ASSERT_TRUE(exchange.complete());
  EXPECT_EQ(*exchange.take(), "ab");
  EXPECT_EQ(give(exchange, 0, "a"), "rank 1 ended and took no part in this exchange");
  exchange.take_waiting();
  EXPECT_FALSE(exchange.deserted());
  EXPECT_EQ(exchange.leave(0, "rank 0 ended"), "");
  EXPECT_TRUE(exchange.deserted());
}

TEST(AllgatherSeries, TheFirstThatLeftIsNamed) {
  const Hosts hosts(4, "a");
  AllgatherSeries exchange(hosts);
  EXPECT_EQ(exchange.leave(2, "rank 2 died"), "");
  EXPECT_EQ(exchange.leave(1, "rank 1 died"), "");
  EXPECT_EQ(give(exchange, 0, "a"), "rank 2 died and took no part in this exchange");
}

TEST(AllgatherSeries, TheEndOfTheJobIsNamedAndNotTheRanksThatItEnds) {
  const Hosts hosts(3, "a");
  AllgatherSeries exchange(hosts);
  EXPECT_EQ(give(exchange, 0, "a"), "");
  EXPECT_EQ(give(exchange, 1, "b"), "");
  exchange.job_ends("rank 1 died; ending the job");
  EXPECT_EQ(exchange.leave(1, "rank 1 died"), "");  // it had given
  EXPECT_EQ(exchange.leave(2, "rank 2 was ended"), "rank 1 died; ending the job");
  EXPECT_EQ(exchange.take_waiting(), (std::vector<int>{0, 1}));
  EXPECT_EQ(give(exchange, 0, "a"), "rank 1 died; ending the job");
}

TEST(AllgatherSeries, WhoIsMissingOnWhichOfSeveralHosts) {
  const Hosts hosts{"a", "a", "b", "b", "b", "c"};
  AllgatherSeries exchange(hosts);
  EXPECT_EQ(give(exchange, 0, "x"), "");
  EXPECT_EQ(give(exchange, 3, "x"), "");
  EXPECT_EQ(exchange.missing(), "ranks 1 on host a, 2, 4 on host b, 5 on host c have not come");
  for (const int rank : {1, 2, 4}) EXPECT_EQ(give(exchange, rank, "x"), "");
  EXPECT_EQ(exchange.missing(), "rank 5 on host c has not come");
}

TEST(AllgatherSeries, ManyHostsAreCut) {
  Hosts hosts;
  for (int i = 0; i < 40; ++i) hosts.push_back("h" + std::to_string(i / 2));
  const AllgatherSeries exchange(hosts);
  EXPECT_TRUE(exchange.missing().ends_with("14-15 on host h7 and 24 more have not come")) << exchange.missing();
}

TEST(AllgatherSeries, LengthsMustAgree) {
  const Hosts hosts(2, "a");
  AllgatherSeries exchange(hosts);
  EXPECT_EQ(give(exchange, 1, "bb"), "");
  EXPECT_EQ(give(exchange, 0, "a"),
            "rank 0 gave 1 bytes to an exchange where rank 1 gave 2; do all ranks run the same program?");
  EXPECT_EQ(exchange.take_waiting(), (std::vector<int>{0, 1}));
}

TEST(AllgatherSeries, BytesOfAllRanksHaveALimit) {
  const std::string blob(rendezvous::kMaxBlob, 'x');
  constexpr size_t kMost = rendezvous::kMaxGathered / rendezvous::kMaxBlob;
  AllgatherSeries most(Hosts(kMost, "a"));
  EXPECT_EQ(give(most, 0, blob), "");
  AllgatherSeries more(Hosts(kMost + 1, "a"));
  EXPECT_EQ(give(more, 0, blob), "an exchange of 1025 ranks with 1048576 bytes each is above 1073741824 bytes");
}

TEST(RankList, RunsAndLimit) {
  EXPECT_EQ(rank_list(std::vector{3}), "3");
  EXPECT_EQ(rank_list(std::vector{0, 1, 2, 5, 7, 8}), "0-2, 5, 7-8");
  std::vector<int> odd;
  for (int i = 0; i < 40; ++i) odd.push_back(2 * i + 1);
  EXPECT_TRUE(rank_list(odd).ends_with("31 and 24 more")) << rank_list(odd);
}

}  // namespace
}  // namespace ibcoll::run
