// SPDX-License-Identifier: BSD-3-Clause
// How the device differs from one that is as fast as memory.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ibcoll::rdma_in_memory {

struct Model {
  // RDMA_IN_MEMORY_LATENCY, of a message, and RDMA_IN_MEMORY_PER_BYTE: nanoseconds. The data is there at once, but
  // completions come later, so there is no promise of order then.
  double latency = 0, per_byte = 0;
  // RDMA_IN_MEMORY_ORDER=no: no promise that the last word of a Write is visible last.
  bool in_order = true;
  // RDMA_IN_MEMORY_SHUFFLE=SEED, from 1: requests wait for some polls, datagrams may be lost or come twice, and without
  // the promise the parts of a Write become visible in any order.
  uint64_t seed = 0;
  // RDMA_IN_MEMORY_REMOVED_AFTER: seconds; 0: it stays.
  double removed_after = 0;

  bool has_times() const { return latency > 0 || per_byte > 0; }
  bool shuffles() const { return seed != 0; }
  // The CLOCK_MONOTONIC nanoseconds at which a message of `bytes` that leaves now has arrived; 0: at once.
  uint64_t arrival(size_t bytes) const;
  // Below `limit`.
  uint64_t pick(uint64_t limit) const;
  void copy_unordered(std::byte* to, const std::byte* from, size_t bytes) const;
};

// As the variables have it when the device is opened.
const Model& model();
uint64_t now_ns();

}  // namespace ibcoll::rdma_in_memory
