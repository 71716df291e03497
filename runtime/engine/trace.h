// SPDX-License-Identifier: BSD-3-Clause
// Arrival and exit of the last calls of a rank: a ring of fixed size. Adding a call neither allocates nor locks (the
// context's lock is held anyway) nor enters the kernel.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/collectives/framework/algorithm.h"

namespace ibcoll {

// One call on one rank. Ranks find their records of the same call by team and op.
struct TracedCall {
  int64_t arrival_ns = 0;
  int64_t exit_ns = 0;
  uint64_t team = 0;                     // its epoch
  const Algorithm* algorithm = nullptr;  // also says which collective
  uint64_t parameter = 0;                // of the algorithm
  uint64_t bytes = 0;                    // see traced_bytes()
  const void* site = nullptr;            // return address of the public call
  uint32_t op = 0;
  uint32_t ranks : 31 = 1;  // of the team
  uint32_t failed : 1 = 0;
};

static_assert(sizeof(TracedCall) == 64);

class TraceRing {
 public:
  // Touches all its memory now, so that no call meets a page fault.
  explicit TraceRing(size_t calls) : ring_(calls) {}

  // CLOCK_MONOTONIC, which all ranks of a machine share. A rank that is alone has no transport to ask for the time.
  static int64_t now_ns() noexcept {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }

  void add(const TracedCall& call) noexcept {
    ring_[next_] = call;
    if (++next_ == ring_.size()) next_ = 0;
    ++added_;
  }
  uint64_t kept() const noexcept { return std::min<uint64_t>(added_, ring_.size()); }
  // The oldest calls, which others have replaced.
  uint64_t dropped() const noexcept { return added_ - kept(); }
  // From the oldest one that is kept.
  const TracedCall& operator[](uint64_t index) const noexcept {
    return ring_[added_ > ring_.size() ? (next_ + index) % ring_.size() : index];
  }

 private:
  std::vector<TracedCall> ring_;
  size_t next_ = 0;
  uint64_t added_ = 0;
};

// The block of a call; of irregular blocks that this rank receives from all, their mean.
inline uint64_t traced_bytes(const Args& args, int p) noexcept {
  const Collective& row = kCatalog[args.collective];
  if (row.recv.extent != Extent::kBlocks || row.rooted) return args.bytes;
  if (!args.recv.counts) return args.recv.bytes;
  uint64_t total = 0;
  for (int i = 0; i < p; ++i) total += args.recv.size(i);
  return total / static_cast<uint64_t>(p);
}

}  // namespace ibcoll
