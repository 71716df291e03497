// SPDX-License-Identifier: BSD-3-Clause
// Circulant schedules take n - 1 + ceil(lg p) rounds, for any p and any distribution of the data.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <numeric>

#include "tests/simulated/one_call.h"

namespace ibcoll {
namespace {

double papers_rounds(int p, uint64_t n) {
  return static_cast<double>(n - 1) + std::bit_width(static_cast<unsigned>(p - 1));
}

OneCallResult run_circulant(CallParams params, uint64_t n, Time alpha_ns, uint64_t bytes_per_round) {
  OneCall call;
  call.params = std::move(params);
  call.algorithm = "circulant";
  call.parameter = n;
  call.alpha_ns = alpha_ns;
  call.bytes_per_round = bytes_per_round;
  return run_one_call(call);
}

// Where bytes cost nothing beside a start-up, time counts dependent messages.
constexpr Time kAlpha = 1'000'000;

CallParams broadcast(int p, uint64_t bytes) {
  CallParams params;
  params.collective = IBCOLL_BCAST;
  params.p = p;
  params.root = p / 2;
  params.bytes = bytes;
  return params;
}

TEST(CirculantBroadcast, TakesTheLeastRounds) {
  for (int p = 2; p <= 40; ++p)
    for (const uint64_t n : {1, 2, 5, 11}) {
      const OneCallResult result = run_circulant(broadcast(p, n * 8), n, kAlpha, kAlpha);
      EXPECT_LE(result.rounds, papers_rounds(p, n) + 0.1) << "p " << p << " n " << n;
      EXPECT_EQ(result.counters.bytes, static_cast<uint64_t>(p - 1) * n * 8) << "each block once to each rank";
    }
}

// Where a block takes one round on a link, no algorithm takes fewer rounds. For other p some ranks have nothing to do
// in a round of the first phase, begin the next one early, and what they send delays others on the link that receives
// it.
TEST(CirculantBroadcast, KeepsTheLinksOfPowersOfTwoBusy) {
  for (const int p : {2, 4, 8, 16, 32, 64})
    for (const uint64_t n : {1, 2, 5, 11, 100})
      EXPECT_EQ(run_circulant(broadcast(p, n * 64), n, 0, 64).rounds, papers_rounds(p, n)) << "p " << p << " n " << n;
}

TEST(CirculantReduce, TakesTheLeastRounds) {
  for (int p = 2; p <= 40; ++p)
    for (const uint64_t n : {1, 2, 5, 11, 40}) {
      CallParams params;
      params.collective = IBCOLL_REDUCE;
      params.p = p;
      params.root = p / 3;
      params.op = IBCOLL_SUM;
      params.count = n * 4;
      const OneCallResult result = run_circulant(params, n, kAlpha, kAlpha);
      EXPECT_LE(result.rounds, papers_rounds(p, n) + 0.1) << "p " << p << " n " << n;
      EXPECT_EQ(result.counters.messages, static_cast<uint64_t>(p - 1) * n) << "each block once from each rank";
    }
}

TEST(CirculantAllgatherv, TakesTheSameRoundsForAllDistributions) {
  for (int p = 2; p <= 40; ++p)
    for (const uint64_t n : {1, 4, 9}) {
      std::vector<uint64_t> regular(static_cast<size_t>(p), 3 * n), increasing = regular, one = regular;
      for (size_t i = 0; i < regular.size(); ++i) increasing[i] = n * (i + 1), one[i] = i == 0 ? 7 * n : 0;
      for (const auto& counts : {regular, increasing, one}) {
        CallParams params;
        params.collective = IBCOLL_ALLGATHERV;
        params.p = p;
        params.counts = counts;
        const OneCallResult result = run_circulant(params, n, kAlpha, kAlpha);
        EXPECT_LE(result.rounds, papers_rounds(p, n) + 0.1) << "p " << p << " n " << n;
        if (counts.back() > 0) {
          EXPECT_GE(result.rounds, papers_rounds(p, n)) << "p " << p << " n " << n;
        }
        const uint64_t total = std::accumulate(counts.begin(), counts.end(), uint64_t{0});
        EXPECT_EQ(result.counters.bytes, total * static_cast<uint64_t>(p - 1)) << "each part once to each rank";
      }
    }
}

}  // namespace
}  // namespace ibcoll
