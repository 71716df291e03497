// SPDX-License-Identifier: BSD-3-Clause
// Parallel least-significant-digit radix sort. Rank r owns positions [first_key(r), first_key(r + 1)) before and after
// each pass, so the load is even whatever the keys are. Source: G. Blelloch et al., "A Comparison of Sorting Algorithms
// for the Connection Machine CM-2", SPAA 1991, section 4.
#pragma once

#include <cstdint>
#include <memory>

#include "perf/apps/layer/job.h"

namespace radix {

using apps::AppJob;
using apps::Error;

// First position that `rank` owns of `keys` positions; rank == ranks gives `keys`.
inline uint64_t first_key(uint64_t keys, int rank, int ranks) noexcept {
  const auto p = static_cast<uint64_t>(ranks), r = static_cast<uint64_t>(rank);
  return keys / p * r + (r < keys % p ? r : keys % p);
}

struct SortTimes {
  double local_us = 0;     // counting and moving keys within the rank
  double exchange_us = 0;  // allgather of histograms and alltoallv of keys
};

using Keys = std::unique_ptr<uint32_t[]>;
// Room for `count` keys; null when memory is short.
Keys make_keys(uint64_t count) noexcept;

// Collective. Sorts the `total` keys of all ranks; `keys` holds this rank's share. `spare` has the same room and is
// used up. Ranks may fail one by one: the caller agrees.
Error sort(AppJob& job, uint64_t total, Keys& keys, Keys& spare, SortTimes& times);

}  // namespace radix
