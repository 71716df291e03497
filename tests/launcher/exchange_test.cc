// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_run/exchange.h"

#include <gtest/gtest.h>

namespace ibcoll::run {
namespace {

std::string give(Exchange& exchange, int rank, std::string_view blob) {
  return exchange.give(rank, std::as_bytes(std::span(blob)));
}

TEST(Exchange, GathersInRankOrderAgainAndAgain) {
  Exchange exchange(3);
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

TEST(Exchange, EmptyBlobs) {
  Exchange exchange(2);
  EXPECT_EQ(give(exchange, 0, ""), "");
  EXPECT_EQ(give(exchange, 1, ""), "");
  ASSERT_TRUE(exchange.complete());
  EXPECT_EQ(*exchange.take(), "");
}

TEST(Exchange, ARankThatLeftFailsTheRoundItIsMissingIn) {
  Exchange exchange(3);
  EXPECT_EQ(give(exchange, 0, "a"), "");
  EXPECT_EQ(exchange.leave(1, "rank 1 died"), "rank 1 died and took no part in this exchange");
  EXPECT_EQ(exchange.take_waiting(), std::vector<int>{0});
  EXPECT_EQ(give(exchange, 2, "c"), "rank 1 died and took no part in this exchange");
}

TEST(Exchange, ARankMayLeaveOnceItHasGiven) {
  Exchange exchange(2);
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

TEST(Exchange, LengthsMustAgree) {
  Exchange exchange(2);
  EXPECT_EQ(give(exchange, 1, "bb"), "");
  EXPECT_EQ(give(exchange, 0, "a"),
            "rank 0 gave 1 bytes to an exchange where rank 1 gave 2; do all ranks run the same program?");
  EXPECT_EQ(exchange.take_waiting(), (std::vector<int>{0, 1}));
}

TEST(RankList, RunsAndLimit) {
  EXPECT_EQ(rank_list({3}), "3");
  EXPECT_EQ(rank_list({0, 1, 2, 5, 7, 8}), "0-2, 5, 7-8");
  std::vector<int> odd;
  for (int i = 0; i < 40; ++i) odd.push_back(2 * i + 1);
  EXPECT_TRUE(rank_list(odd).ends_with("31 and 24 more")) << rank_list(odd);
}

}  // namespace
}  // namespace ibcoll::run
