// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_run/late_ranks.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace ibcoll::run {
namespace {

using Lines = std::vector<std::string>;

TEST(LateRanks, NamesWhoIsAwaitedAndNotInTheCall) {
  LateRanks late;
  late.read(
      "ibcoll rank 0: allreduce (ring) #12 waits for data of ranks 1 (0 of 2 messages landed) "
      "[call of team 1 #12 by rank 0 for 4.2 s, awaits 1]\n");
  late.read(
      "[1] ibcoll rank 1: allreduce (ring) #12 waits for data of rank 2 [call of team 1 #12 by rank 1 for 3.1 s, "
      "awaits 2]\nibcoll rank 2: not waiting in ibcoll\n");
  EXPECT_EQ(late.summary(), Lines{"rank 2 is late for allreduce (ring) #12: ranks 0,1 wait for it since 4.2 s"});
}

// The longest wait counts, in whatever order the ranks report.
TEST(LateRanks, TheLongestWaitCounts) {
  LateRanks late;
  for (const auto& [rank, seconds] : {std::pair(0, 1.5), std::pair(1, 9.5), std::pair(2, 3.5)})
    late.read(
        fmt::format("ibcoll rank {0}: barrier (tree) #3 waits [call of team 1 #3 by rank {0} for {1} s, awaits 3]\n",
                    rank, seconds));
  EXPECT_EQ(late.summary(), Lines{"rank 3 is late for barrier (tree) #3: ranks 0,1,2 wait for it since 9.5 s"});
}

TEST(LateRanks, ManyAreCut) {
  LateRanks late;
  std::string awaited;
  for (int rank = 1; rank <= 20; ++rank) awaited += fmt::format("{}{}", rank == 1 ? "" : ",", rank);
  late.read(fmt::format("ibcoll rank 0: barrier (tree) #3 waits [call of team 1 #3 by rank 0 for 1.0 s, awaits {}]\n",
                        awaited));
  EXPECT_EQ(late.summary(), Lines{"ranks 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16 and 4 more are late for barrier (tree) "
                                  "#3: rank 0 waits for them since 1.0 s"});
}

TEST(LateRanks, EachCallByItself) {
  LateRanks late;
  late.read("ibcoll rank 0: barrier (tree) #3 waits [call of team 1 #3 by rank 4 for 1.0 s, awaits 5,6]\n");
  late.read("ibcoll rank 0: barrier (tree) #3 waits [call of team 2 #3 by rank 0 for 2.0 s, awaits 1]\n");
  EXPECT_EQ(late.summary(), (Lines{"ranks 5,6 are late for barrier (tree) #3: rank 4 waits for them since 1.0 s",
                                   "rank 1 is late for barrier (tree) #3: rank 0 waits for it since 2.0 s"}));
}

// Teams of one split have the same number.
TEST(LateRanks, TeamsAreDistinguishedByTheirWholeName) {
  LateRanks late;
  for (const int first : {0, 2})
    late.read(
        fmt::format("ibcoll rank {0}: barrier (tree) #3 waits [call of team 2 (2 ranks, the first is {0}) #3 by rank "
                    "{0} for 1.0 s, awaits {1}]\n",
                    first, first + 1));
  EXPECT_EQ(late.summary(), (Lines{"rank 1 is late for barrier (tree) #3: rank 0 waits for it since 1.0 s",
                                   "rank 3 is late for barrier (tree) #3: rank 2 waits for it since 1.0 s"}));
}

TEST(LateRanks, NobodyIsLateWhereAllAreThere) {
  LateRanks late;
  late.read("ibcoll rank 0: barrier (tree) #3 waits [call of team 1 #3 by rank 0 for 1.0 s, awaits 1]\n");
  late.read("ibcoll rank 1: barrier (tree) #3 waits [call of team 1 #3 by rank 1 for 1.0 s, awaits 0]\n");
  EXPECT_TRUE(late.summary().empty());
}

TEST(LateRanks, PassesOverOtherLines) {
  LateRanks late;
  late.read("\nhello\nibcoll rank 0: [call of team x\n[call of team 1 #3 by rank 0 for 1.0 s, awaits 1]\n");
  late.read("ibcoll rank 0: a #1 waits [call of team 1 #3 by rank 0 for 1.0 s]\n");
  EXPECT_TRUE(late.summary().empty());
}

}  // namespace
}  // namespace ibcoll::run
