// SPDX-License-Identifier: BSD-3-Clause
// Predicted times, in the alpha-beta terms of the papers, with two additions. When a node has more ranks than cores, a
// rank that waits for another one waits until all ranks of its core have had a time slice. And bytes cost more when
// another core touched them last, and more again where they are in no cache. The constants are those of
// runtime/transport/cost_constants.h.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "runtime/comm/node_window.h"
#include "runtime/transport/cost_constants.h"

namespace ibcoll {

struct CostModel {
  static constexpr double kNever = uint64_t{1} << 50;  // bytes

  double alpha_us = cost::kUnknownLink.alpha_us;         // start-up of a message on the slowest link of the team
  double beta_us = cost::kUnknownLink.beta_us_per_byte;  // per byte there, of a rank while all ranks of its core send
  double copy_us = cost::kCopyUs;                        // per byte of a copy of what another core touched last
  double streamed_copy_us = cost::kCopyUs;               // the same, among more than own_cache_bytes
  double own_cache_bytes = cost::kOwnCacheBytes;
  double cached_copy_us = cost::kCachedCopyUs;  // per byte of a copy of what this core has
  double combine_us = cost::kCachedCopyUs;      // per byte that is combined in place with another operand
  double memory_us = cost::kBeyondCachesUs;     // more per byte of a block through shared memory that no cache holds
  double cache_bytes = cost::kCacheBytes;
  double read_us = cost::kReadUs;  // start-up of a single-copy read
  double read_us_per_byte = cost::kReadByteUs;
  double eager_bytes = cost::kEagerBytes;     // what goes at once, also to a rank that is not there
  double spill_bytes = cost::kSpillBytes;     // what all others together may send to such a rank by serve()
  double flag_us = cost::kFlagUs;             // until a flag set in shared memory is seen by another core
  double cpu_us = cost::kUnknownLink.cpu_us;  // handling of one message by its sender or receiver
  bool by_ranks = false;                      // ranks move the bytes of messages themselves
  bool moves_meanwhile = false;               // an adapter moves them while ranks compute
  double yield_us = 0.0;                      // until all other ranks of the core have had a time slice
  double sharing = 1.0;                       // ranks per core, at least 1

  // One message of m bytes that its receiver waits for.
  double message_us(double m) const { return alpha_us + yield_us + beta_us * m + 2 * cpu_us * sharing; }
  // Per byte of a rank while the others of its core wait.
  double lone_beta_us() const { return by_ranks ? beta_us / sharing : beta_us; }
  // One more message in a stream to other ranks, nobody waiting in between.
  double stream_us(double m) const { return 2 * cpu_us * sharing + beta_us * m; }
  // Per byte, where a core goes through `touched` bytes of shared memory before it comes back to the same place. It may
  // be cheaper to find bytes in a cache that the cores share than to take them out of each other's. (allgather,
  // alltoall and allreduce on one node; alltoallv chooses block by block, by read_from() and stream_from(); others
  // reuse less memory.)
  double copy_us_of(double touched) const { return touched < own_cache_bytes ? copy_us : streamed_copy_us; }
  // All ranks of the node copy m bytes each, from or to where other cores look for them.
  double copies_us(double m, double touched = 0) const { return sharing * copy_us_of(touched) * m; }
  // All copy the same m bytes: the first one of a core takes them across, the others find them there.
  double shared_copies_us(double m, double touched = 0) const {
    return (copy_us_of(touched) + (sharing - 1) * cached_copy_us) * m;
  }
  // All copy m bytes of their own, for themselves.
  double own_copies_us(double m) const { return sharing * cached_copy_us * m; }
  // All combine m bytes of their own with as many others, in the caches.
  double combines_us(double m) const { return sharing * combine_us * m; }
  // All make `reads` single-copy reads of m bytes together.
  double reads_us(double reads, double m) const { return sharing * (read_us * reads + read_us_per_byte * m); }
  // Blocks of m bytes that p ranks exchange through shared memory: what they take longer when all that is sent,
  // received and between the two exceeds the caches.
  double beyond_caches_us(int p, double m) const {
    return m > leaves_caches(p) ? sharing * memory_us * m * (p - 1) : 0;
  }
  double leaves_caches(int p) const { return cache_bytes / 3 / p / p; }
  // From this block size on, where p ranks of a node exchange blocks, one read beats two copies.
  uint64_t read_from(int p) const;
  // And from this one on, up to what leaves the caches, two copies in a long stream through areas of so many bytes beat
  // the read.
  uint64_t stream_from(int p, uint64_t area_bytes) const;
  // All ranks publish a step of the node window and see each other's.
  double step_us(int p) const { return flag_us + yield_us + sharing * cost::kLookUs * p; }
  // One rank publishes `steps` steps one after the other, and the others follow.
  double pipelined_steps_us(double steps) const { return steps * cost::kPipelinedStep * step_us(2); }
};

inline uint64_t CostModel::stream_from(int p, uint64_t area_bytes) const {
  const double touched = 2 * static_cast<double>(NodeWindow::kBanks) * static_cast<double>(area_bytes);
  const bool faster = sharing <= 1 && touched >= own_cache_bytes && 2 * streamed_copy_us < read_us_per_byte;
  return static_cast<uint64_t>(faster ? own_cache_bytes / (2 * p) : kNever);
}

inline uint64_t CostModel::read_from(int p) const {
  const auto equal_at = [this](double beyond) {
    const double gain = 2 * copy_us + beyond - read_us_per_byte;
    return gain > 0 ? read_us / gain : kNever;
  };
  return static_cast<uint64_t>(std::min(equal_at(0), std::max(equal_at(memory_us), leaves_caches(p))));
}

inline int ceil_log2(int p) { return p <= 1 ? 0 : std::bit_width(static_cast<unsigned>(p - 1)); }

}  // namespace ibcoll
