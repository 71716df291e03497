// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/engine/ahead.h"

#include <gtest/gtest.h>

namespace ibcoll {
namespace {

constexpr uint64_t kMany = uint64_t{1} << 40;

// How many collectives from `op` on may begin, of `bytes` bytes each.
uint32_t begun(Ahead& ahead, uint32_t op, const Ahead::Limits& limits, uint64_t bytes) {
  uint32_t count = 0;
  while (count < 1000 && ahead.begin(op + count, limits)) {
    ahead.sent(bytes);
    ++count;
  }
  return count;
}

TEST(Ahead, SoManyCollectives) {
  for (const uint32_t most : {1, 2, 3, 7, 8, 9, 16, 100, 128}) {
    Ahead ahead;
    EXPECT_EQ(begun(ahead, 1, {most, kMany}, 8), most);
    ahead.completed(most);
    EXPECT_EQ(begun(ahead, most + 1, {most, kMany}, 8), most) << "all are complete";
  }
}

TEST(Ahead, SoManyBytes) {
  Ahead ahead;
  const Ahead::Limits limits{128, 100'000};
  EXPECT_EQ(begun(ahead, 1, limits, 8192), 13u) << "the last one begins with 98,304";
  EXPECT_EQ(begun(ahead, 14, limits, 8192), 0u);
  ahead.completed(13);
  EXPECT_EQ(begun(ahead, 14, limits, 1 << 20), 1u) << "one is never too long";
}

// After any number of calls: within one group, and after so many that each group is used several times.
TEST(Ahead, BytesOfCompletedCollectivesDoNotCount) {
  for (const uint32_t most : {8, 128}) {
    Ahead ahead;
    const Ahead::Limits limits{most, 100'000};
    for (uint32_t op = 1; op < 200; op += 5) {
      EXPECT_EQ(begun(ahead, op, limits, 20'000), 5u) << most << ", " << op;
      ahead.completed(op + 4);
    }
  }
}

TEST(Ahead, HalfOfTheCreditBringsAtLeastAThird) {
  for (const uint32_t most : {2, 8, 16, 64, 128}) {
    Ahead ahead;
    EXPECT_EQ(begun(ahead, 1, {most, kMany}, 8), most);
    ahead.completed(most / 2);
    EXPECT_GE(begun(ahead, most + 1, {most, kMany}, 8), most / 3) << most;
  }
}

TEST(Ahead, OldCreditChangesNothing) {
  Ahead ahead;
  const Ahead::Limits limits{16, kMany};
  ahead.completed(500);
  EXPECT_EQ(begun(ahead, 501, limits, 8), 16u);
  ahead.completed(400);
  EXPECT_EQ(begun(ahead, 517, limits, 8), 0u);
}

// Two collectives in flight: the younger one has used all credit, the older one has not sent anything yet.
TEST(Ahead, YoungerCollectivesDoNotHoldAnOlderOneBack) {
  for (const uint32_t most : {1, 8, 128}) {
    Ahead ahead;
    EXPECT_EQ(begun(ahead, 100, {most, 1000}, 1000), 1u);
    EXPECT_TRUE(ahead.begin(98, {most, 1000}));
    EXPECT_TRUE(ahead.begin(97, {most, 1000}));
    EXPECT_FALSE(ahead.begin(101, {most, 1000}));
  }
}

TEST(Ahead, NumbersBeginAnew) {
  Ahead ahead;
  const Ahead::Limits limits{16, kMany};
  EXPECT_EQ(begun(ahead, UINT32_MAX - 5, limits, 8), 16u);
  ahead.completed(UINT32_MAX - 6 + 16);
  EXPECT_EQ(begun(ahead, UINT32_MAX - 5 + 16, limits, 8), 16u);
}

// A program whose ranks keep pace, and one whose ranks lag now and then.
TEST(Ahead, NeverMoreThanTheLimitIsOpen) {
  const Ahead::Limits limits{20, kMany};
  Ahead ahead;
  uint32_t op = 0, completed = 0, random = 1;
  for (int i = 0; i < 100'000; ++i) {
    random = random * 1664525 + 1013904223;
    if (random >> 28 < 9 && ahead.begin(op + 1, limits)) ++op;
    if (random >> 28 >= 9 && completed < op) ahead.completed(completed += 1 + (random >> 20) % (op - completed));
    ASSERT_LE(op - completed, limits.collectives);
  }
  EXPECT_GT(op, 10'000u);
}

}  // namespace
}  // namespace ibcoll
