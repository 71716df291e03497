// SPDX-License-Identifier: BSD-3-Clause
// One long block between the two ranks of a team on one node. Its receiver reads the first part in the sender's memory,
// while the sender writes the rest into the receiver's: a half each, where both have nothing else to copy.
#pragma once

#include "runtime/collectives/framework/cost_model.h"
#include "runtime/collectives/framework/single_copy.h"

namespace ibcoll {

// Both give the bytes that are read, alike. At the sender `from` is the block, at the receiver `to`: of as many bytes,
// or the collective fails. The sender's line of the node window holds the number of bytes at `entry`, 0 or 1, where
// scatter/one_step.h has that of a short block.
// Source: the overlap of both sides of a copy in shared memory, as in bcast/shm.cc, without the memory in between.
// Cost: 2 steps; a read; a message, if not all is read.
Task send_in_pair(Comm& c, ConstBytes from, uint64_t read, int entry = 0);
Task receive_in_pair(Comm& c, Bytes to, uint64_t read, int entry = 0);

// In whole pages.
inline uint64_t half_of(ConstBytes block) noexcept {
  constexpr uint64_t kPage = 4096;
  return block.size() / 2 / kPage * kPage;
}
inline double halves_us(double bytes, const CostModel& m) {
  return 2 * m.step_us(2) + m.message_us(0) + m.sharing * m.read_us_per_byte * bytes / 2;
}

inline const char* applies_to_pairs(const Shape& shape) {
  return shape.p == 2 ? applies_with_single_copy(shape) : "it is for two ranks";
}

}  // namespace ibcoll
