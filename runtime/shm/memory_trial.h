// SPDX-License-Identifier: BSD-3-Clause
// The cost of moving bytes between two ranks of a node: through memory that both share, and by single-copy
// reads. It depends on which caches their cores share, by a factor of seven on one machine, and decides which of the
// two is faster.
#pragma once

#include <chrono>
#include <vector>

#include "runtime/shm/segment.h"
#include "runtime/transport/transport.h"

namespace ibcoll::shm {

// The partner with which the local rank times the node, or -1: the first rank and the one half of the node away time
// it.
int trial_partner(int rank, int ranks) noexcept;

// Both partners call it, before they send anything to each other, and borrow memory of the segment meanwhile. `reads`:
// the kernel lets this rank read the partner's memory. Times are medians of the best of three rounds, without those of
// waiting. What was not timed is 0: all, if the partner does not keep up for one round until `limit`.
MemoryModel time_memory(Segment& segment, int rank, int partner, bool reads, std::chrono::nanoseconds limit);

// The times that a job uses of those of its ranks: the median of the copies, and the median of the reads; of two, the
// faster one, because a disturbance makes ranks slower, never faster. Independent of the order.
MemoryModel middle_of(std::vector<MemoryModel> timed);

}  // namespace ibcoll::shm
