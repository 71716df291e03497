// SPDX-License-Identifier: BSD-3-Clause
#include "tools/oracle/distributions.h"

#include <gtest/gtest.h>

#include <numeric>
#include <set>
#include <string>
#include <vector>

namespace ibcoll::oracle {
namespace {

using Sizes = std::vector<uint64_t>;

Sizes sizes(Distribution distribution, uint64_t c, int p) {
  Sizes all;
  for (int i = 0; i < p; ++i) all.push_back(distributed(distribution, c, i, p));
  return all;
}

uint64_t sum(const Sizes& all) { return std::accumulate(all.begin(), all.end(), uint64_t{0}); }

TEST(Distributions, OfTheRingPaper) {
  EXPECT_EQ(sizes(Distribution::kRegular, 60, 4), (Sizes{60, 60, 60, 60}));
  EXPECT_EQ(sizes(Distribution::kBroadcast, 60, 4), (Sizes{60, 0, 0, 0}));
  EXPECT_EQ(sizes(Distribution::kSpike, 60, 4), (Sizes{30, 10, 10, 10}));
  EXPECT_EQ(sizes(Distribution::kHalfFull, 60, 5), (Sizes{120, 0, 120, 0, 120}));
  EXPECT_EQ(sizes(Distribution::kDecreasing, 60, 4), (Sizes{120, 80, 40, 0}));
  // c p / (i log2 p): 60 * 8 / 3 = 160 once, half of it twice, a quarter four times; the last rank begins the next
  // level.
  EXPECT_EQ(sizes(Distribution::kGeometric, 60, 8), (Sizes{160, 80, 80, 40, 40, 40, 40, 20}));
}

TEST(Distributions, OfTheGatherPaper) {
  EXPECT_EQ(sizes(Distribution::kSame, 7, 3), (Sizes{7, 7, 7}));
  EXPECT_EQ(sizes(Distribution::kDecreasingGather, 10, 4), (Sizes{21, 16, 11, 6}));
  EXPECT_EQ(sizes(Distribution::kAlternating, 7, 4), (Sizes{10, 4, 10, 4}));
  EXPECT_EQ(sizes(Distribution::kTwoBlocks, 7, 4), (Sizes{7, 0, 0, 7}));
  for (const uint64_t size : sizes(Distribution::kRandom, 5, 2000)) EXPECT_TRUE(size >= 1 && size <= 10) << size;
  const Sizes random = sizes(Distribution::kRandom, 5, 2000);
  EXPECT_EQ(std::set<uint64_t>(random.begin(), random.end()).size(), 10u);
  const Sizes spikes = sizes(Distribution::kSpikes, 5, 2000);
  EXPECT_EQ(std::set<uint64_t>(spikes.begin(), spikes.end()), (std::set<uint64_t>{1, 25}));
  EXPECT_NEAR(static_cast<double>(sum(spikes)), 2000 * (25.0 / 5 + 4.0 / 5), 600);
}

TEST(Distributions, OfThisProject) {
  EXPECT_EQ(sizes(Distribution::kMild, 100, 5), (Sizes{50, 100, 150, 75, 125}));
  EXPECT_EQ(sizes(Distribution::kMild, 1, 5), (Sizes{1, 1, 2, 1, 1}));
  EXPECT_EQ(sizes(Distribution::kRagged, 100, 5), (Sizes{0, 100, 200, 50, 150}));
}

TEST(Distributions, AnyNumberOfRanksAndAnySize) {
  for (size_t i = 0; i < std::size(kDistributions); ++i)
    for (const int p : {1, 2, 3, 1000})
      for (const uint64_t c : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 40}) {
        const auto all = sizes(static_cast<Distribution>(i), c, p);
        EXPECT_LE(sum(all), 5 * (c + 1) * static_cast<uint64_t>(p)) << kDistributions[i] << " " << p << " " << c;
      }
}

TEST(Distributions, OfPairs) {
  for (int source = 0; source < 6; ++source)
    for (int destination = 0; destination < 6; ++destination) {
      EXPECT_EQ(distributed_pair(Distribution::kDecreasing, 60, source, destination, 6),
                distributed(Distribution::kDecreasing, 60, source, 6));
      for (size_t i = 0; i < std::size(kDistributions); ++i) {
        const auto distribution = static_cast<Distribution>(i);
        EXPECT_EQ(distributed_pair(distribution, 60, source, destination, 6, true),
                  distributed_pair(distribution, 60, destination, source, 6, true));
      }
    }
  EXPECT_NE(distributed_pair(Distribution::kRandom, 1 << 20, 1, 2, 6),
            distributed_pair(Distribution::kRandom, 1 << 20, 1, 3, 6));
}

}  // namespace
}  // namespace ibcoll::oracle
