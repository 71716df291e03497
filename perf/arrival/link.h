// SPDX-License-Identifier: BSD-3-Clause
// The cost of a message between the first and the last rank, which are on two nodes where there are several; and how
// far apart clocks are. Written once for ibcoll and for the libraries it is compared with.
//
// `Pairs` gives, on every rank alike: `bool open(int first, int second, void* buffer, uint64_t bytes)` prepares
// messages between two ranks, `bool message(bool forward)` sends or receives one and is for these two alone, `bool
// close()`; and `int rank()`, `int size()`, `bool largest(double&)`. False means failed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "perf/arrival/figures.h"

namespace ibcoll::perf {

// Half of the median round trip, on all ranks.
template <typename Pairs>
bool message_time(Pairs& pairs, uint64_t bytes, int rounds, double& microseconds) {
  const int last = pairs.size() - 1;
  std::vector<char> buffer(bytes);
  microseconds = 0;
  if (last == 0) return true;
  if (!pairs.open(0, last, buffer.data(), bytes)) return false;
  std::vector<double> trips;
  for (int i = 0; i < rounds + 2 && (pairs.rank() == 0 || pairs.rank() == last); ++i) {
    const double begin = now_us();
    if (!pairs.message(true) || !pairs.message(false)) return false;
    if (i >= 2) trips.push_back(now_us() - begin);  // the first ones connect and touch memory
  }
  if (pairs.rank() == 0) {
    const auto middle = trips.begin() + static_cast<std::ptrdiff_t>(trips.size() / 2);
    std::nth_element(trips.begin(), middle, trips.end());
    microseconds = *middle / 2;
  }
  return pairs.close() && pairs.largest(microseconds);
}

// From messages of 8 bytes and 1 MB: long enough that a shaped link's burst is a small part.
template <typename Pairs>
bool message_cost(Pairs& pairs, MessageCost& cost) {
  constexpr uint64_t kShort = 8, kLong = 1 << 20;
  double long_us = 0;
  if (!message_time(pairs, kShort, 50, cost.alpha_us) || !message_time(pairs, kLong, 7, long_us)) return false;
  cost.beta_us = std::max(0.0, (long_us - cost.alpha_us) / static_cast<double>(kLong - kShort));
  return true;
}

// The time to add to this rank's clock to get rank 0's, and the largest error of all ranks: half of the shortest of
// several round trips (Cristian 1989). `apart[r]`: the clock of rank r is not rank 0's. The same on all ranks.
template <typename Pairs>
bool clock_offset(Pairs& pairs, const std::vector<bool>& apart, double& offset_us, double& error_us) {
  constexpr int kTrips = 30;
  offset_us = error_us = 0;
  for (int peer = 1; peer < pairs.size(); ++peer) {
    if (!apart[static_cast<size_t>(peer)]) continue;
    double stamp = 0, shortest = 1e18;
    if (!pairs.open(0, peer, &stamp, sizeof stamp)) return false;
    for (int i = 0; i < kTrips && (pairs.rank() == 0 || pairs.rank() == peer); ++i) {
      const double begin = now_us();
      // The peer asks, rank 0 answers with its clock.
      if (!pairs.message(false)) return false;
      if (pairs.rank() == 0) stamp = now_us();
      if (!pairs.message(true)) return false;
      const double end = now_us();
      if (pairs.rank() != peer || end - begin >= shortest) continue;
      shortest = end - begin;
      offset_us = stamp - (begin + end) / 2;
      error_us = shortest / 2;
    }
    if (!pairs.close()) return false;
  }
  return pairs.largest(error_us);
}

}  // namespace ibcoll::perf
