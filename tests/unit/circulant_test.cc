// SPDX-License-Identifier: BSD-3-Clause
// The schedules against their definition: every rank receives every block exactly once, and sends only what it has.
#include "runtime/collectives/framework/circulant.h"

#include <gtest/gtest.h>

#include <bit>
#include <vector>

#include "runtime/sim/random.h"

namespace ibcoll {
namespace {

// "" or what is wrong.
std::string broadcast(int p, int64_t n) {
  const CirculantTable& table = *CirculantTable::of(p);
  const CirculantRounds rounds(table, n);
  if (rounds.count() != (p > 1 ? n - 1 + std::bit_width(static_cast<unsigned>(p - 1)) : 0)) return "rounds";
  std::vector<std::vector<bool>> has(static_cast<size_t>(p), std::vector<bool>(static_cast<size_t>(n), false));
  has[0].assign(static_cast<size_t>(n), true);
  std::vector<int64_t> received(static_cast<size_t>(p), 0);
  std::vector<int64_t> coming(static_cast<size_t>(p));
  for (int64_t i = 0; i < rounds.count(); ++i) {
    const CirculantRound round = rounds[i];
    for (int r = 0; r < p; ++r) {
      const int to = (r + round.skip) % p;
      const int64_t block = round.sent(r);
      if (block != round.received(to)) return "the receiver expects another block";
      if (block >= 0 && !has[static_cast<size_t>(r)][static_cast<size_t>(block)])
        return "it does not have what it sends";
      coming[static_cast<size_t>(to)] = block;
    }
    for (size_t r = 0; r < static_cast<size_t>(p); ++r) {
      if (coming[r] < 0) continue;
      const auto block = static_cast<size_t>(coming[r]);
      if (has[r][block]) return "it has that block already";
      has[r][block] = true;
      ++received[r];
    }
  }
  for (size_t r = 1; r < static_cast<size_t>(p); ++r)
    if (received[r] != n) return "a block is missing";
  return "";
}

// Every number of ranks up to 300; above, those next to multiples of 16.
TEST(Circulant, EveryRankReceivesEveryBlockOnce) {
  for (int p = 1; p <= 1100; ++p)
    for (const int64_t n : {1, 3, 14}) {
      if (p > 300 && p % 16 > 1 && p % 16 != 15) break;
      ASSERT_EQ(broadcast(p, n), "") << "p " << p << " n " << n;
    }
}

// Too large for the whole definition: sampled ranks get every block once, each from a rank that received it before, or
// the root.
TEST(Circulant, SampledRanksOfManyReceiveEveryBlockOnce) {
  sim::Random random(1);
  for (const int p : {65536, 65535, 65537, 43691}) {
    const CirculantTable& table = *CirculantTable::of(p);
    for (const int64_t n : {1, 5, 17, 100}) {
      const CirculantRounds rounds(table, n);
      for (int sample = 0; sample < 500; ++sample) {
        const int r = sample < 20 ? p - 1 - sample : 1 + static_cast<int>(random.below(static_cast<uint64_t>(p - 1)));
        std::vector<int> times(static_cast<size_t>(n), 0);
        for (int64_t i = 0; i < rounds.count(); ++i) {
          const int64_t block = rounds[i].received(r);
          if (block < 0) continue;
          ++times[static_cast<size_t>(block)];
          const int from = (r - rounds[i].skip + p) % p;
          ASSERT_EQ(rounds[i].sent(from), block);
          bool had = from == 0;
          for (int64_t before = 0; before < i && !had; ++before) had = rounds[before].received(from) == block;
          ASSERT_TRUE(had) << "p " << p << " n " << n << " rank " << r << " from " << from << " block " << block;
        }
        for (const int t : times) ASSERT_EQ(t, 1) << "p " << p << " n " << n << " rank " << r;
      }
    }
  }
}

TEST(Circulant, ATableIsMadeOnce) {
  EXPECT_EQ(CirculantTable::of(33), CirculantTable::of(33));
  EXPECT_NE(CirculantTable::of(33), CirculantTable::of(34));
  EXPECT_EQ(CirculantTable::of(1)->q(), 0);
}

}  // namespace
}  // namespace ibcoll
