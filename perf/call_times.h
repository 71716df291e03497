// SPDX-License-Identifier: BSD-3-Clause
// The loop, the clock and the statistics that ibcoll_perf and the programs it is compared with share, so that a ratio
// of two figures compares libraries and not definitions.
//
// A figure is made so: `warmup` calls, a barrier, then `iterations` calls back to back, no barrier between them, each
// timed on its own by CLOCK_MONOTONIC. Memory is page aligned, and written before the first call.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <numeric>
#include <vector>

namespace ibcoll::perf {

// Microseconds, over ranks.
struct CallTimes {
  double t_min = 0;  // mean call of the rank whose mean is least
  double t_avg = 0;  // mean over ranks and iterations
  double t_max = 0;  // mean call of the rank whose mean is greatest
  double p99 = 0;    // 99 of 100 calls of all ranks took no longer
  double p50 = 0, p90 = 0;
};

inline double now_us() noexcept {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) * 1e-3;
}

// `calls`: microseconds of every timed call: those of rank 0, then as many of rank 1, ... Reordered.
inline CallTimes summarize(std::vector<double>& calls, size_t ranks) {
  CallTimes times;
  if (ranks == 0 || calls.size() < ranks) return times;
  const size_t each = calls.size() / ranks;
  double sum = 0;
  for (size_t rank = 0; rank < ranks; ++rank) {
    const auto first = calls.begin() + static_cast<std::ptrdiff_t>(rank * each);
    const double mean =
        std::accumulate(first, first + static_cast<std::ptrdiff_t>(each), 0.0) / static_cast<double>(each);
    times.t_min = rank == 0 ? mean : std::min(times.t_min, mean);
    times.t_max = std::max(times.t_max, mean);
    sum += mean;
  }
  times.t_avg = sum / static_cast<double>(ranks);
  const auto percentile = [&calls](size_t percent) {
    const size_t index = (calls.size() * percent + 99) / 100 - 1;  // nearest rank
    std::nth_element(calls.begin(), calls.begin() + static_cast<std::ptrdiff_t>(index), calls.end());
    return calls[index];
  };
  times.p50 = percentile(50);
  times.p90 = percentile(90);
  times.p99 = percentile(99);
  return times;
}

// How many calls fill `budget_us` when one takes `call_us` (the slowest rank's mean over the warm-up, so that all ranks
// decide alike); at least 5, at most 20,000.
inline uint64_t iterations_for(double call_us, double budget_us) noexcept {
  return static_cast<uint64_t>(std::clamp(budget_us / std::max(call_us, 0.01), 5.0, 20000.0));
}

// Bytes of an element of a reduction of `bytes` bytes, the widest that divides it: 8 double, 4 float, else an unsigned
// integer.
inline size_t element_width(uint64_t bytes) noexcept {
  return bytes % 8 == 0 ? 8 : bytes % 4 == 0 ? 4 : bytes % 2 == 0 ? 2 : 1;
}

}  // namespace ibcoll::perf
