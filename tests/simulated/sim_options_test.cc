// SPDX-License-Identifier: BSD-3-Clause
// The command line of ibcoll_sim.
#include <gtest/gtest.h>

#include "tools/ibcoll_sim/options.h"

namespace ibcoll::simulator {
namespace {

Options parsed(std::vector<const char*> words) {
  words.insert(words.begin(), {"ibcoll_sim", "gatherv", "--ranks", "4"});
  Options options;
  const std::optional<EarlyEnd> end = parse_options(static_cast<int>(words.size()), words.data(), options);
  EXPECT_FALSE(end) << end->error;
  return options;
}

TEST(SimOptions, AGapThatIsNotGivenIsTheStartUpOfItsLinks) {
  const Options start_ups = parsed({"--alpha", "7", "--node-alpha", "3"});
  EXPECT_EQ(start_ups.gap_us, 7);
  EXPECT_EQ(start_ups.node_gap_us, 3);
  const Options gaps = parsed({"--alpha", "7", "--node-alpha", "3", "--gap", "0", "--node-gap", "1"});
  EXPECT_EQ(gaps.gap_us, 0);
  EXPECT_EQ(gaps.node_gap_us, 1);
}

TEST(SimOptions, SizesReachTheirLimits) {
  EXPECT_EQ(parsed({"--eager", "1M"}).eager_bytes, uint64_t{1} << 20);
  EXPECT_EQ(parsed({"--eager", "0"}).eager_bytes, 0u);
  EXPECT_EQ(parsed({"--window", "4M"}).window_bytes, uint64_t{4} << 20);
  EXPECT_EQ(parsed({"--window", "4K"}).window_bytes, 4096u);
  EXPECT_EQ(parsed({"--window", "5000"}).window_bytes, 4992u) << "whole lines";
}

TEST(SimOptions, WhoIsLate) {
  const Arrival last = parsed({"--arrival", "late:0,3:1.5"}).arrival;
  for (int rank = 0; rank < 4; ++rank) EXPECT_EQ(last.of(rank), rank == 0 || rank == 3 ? 1500 : 0) << rank;
  const Arrival random = parsed({"--arrival", "random:20"}).arrival;
  for (int rank = 0; rank < 4; ++rank) EXPECT_LT(random.of(rank), 20'000) << rank;
  EXPECT_NE(random.of(0), random.of(1));
}

}  // namespace
}  // namespace ibcoll::simulator
