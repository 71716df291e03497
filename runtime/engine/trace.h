// SPDX-License-Identifier: BSD-3-Clause
// Arrival and exit of the last calls of a rank, and when their peers were served: circular buffers of fixed size.
// Adding a call neither allocates nor locks (the context's lock is held anyway) nor enters the kernel.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/collectives/framework/algorithm.h"
#include "runtime/engine/trace_lists.h"

namespace ibcoll {

// One call on one rank. Ranks find their records of the same call by team and op.
struct TracedCall {
  static constexpr int64_t kNever = -1;
  int64_t arrival_ns = 0;
  int64_t exit_ns = 0;
  uint64_t team = 0;                     // its epoch
  const Algorithm* algorithm = nullptr;  // it names the collective, too
  uint64_t parameter = 0;                // of the algorithm
  uint64_t bytes = 0;                    // see traced_bytes()
  const void* site = nullptr;            // Tracer::call_site()
  uint32_t op = 0;
  uint32_t ranks : 31 = 1;  // of the team
  uint32_t failed : 1 = 0;
  // In the node window: when this rank published first; the step in which it waited longest for other ranks of the
  // node, and the rank whose publication ended that. Nanoseconds after its arrival.
  int64_t published_ns = kNever;
  int64_t waited_from_ns = kNever;
  int64_t waited_until_ns = kNever;
  int32_t waited_for = -1;  // job rank; -1: it waited for no rank
  int32_t root = 0;         // where the collective has one
  // When the program began to wait for the call, in nanoseconds after its arrival: 0 for a blocking call. kNever: it did
  // not.
  int64_t wait_ns = kNever;
  uint32_t counts = TraceLists::kNone;  // see traced_counts()
  uint32_t element_bytes = 1;           // of a reduction
  uint8_t type = 0;                     // ibcoll_type_t of a reduction
  int8_t operation = 0;                 // OpIndex of a reduction
  bool commutative = true;
  uint8_t scheme = 0;  // ibcoll_scheme_t
};

static_assert(sizeof(TracedCall) == 120);

// The messages between this rank and a peer in one call. Nanoseconds after this rank's arrival; kNever: there were
// none.
struct TracedPeer {
  static constexpr int64_t kNever = -1;
  int64_t begun_ns = kNever;   // the first byte for the peer was handed to the transport
  int64_t sent_ns = kNever;    // all was, and its source is reusable
  int64_t landed_ns = kNever;  // all that came from the peer was there
  int32_t job_rank = 0;
  uint32_t call = 0;  // TraceBuffer::number()
};

static_assert(sizeof(TracedPeer) == 32);

class TraceBuffer {
 public:
  // Touches all its memory now, so that no call meets a page fault.
  explicit TraceBuffer(size_t calls, size_t peers = 0) : calls_(calls), peers_(peers) {}

  // CLOCK_MONOTONIC, which all ranks of a machine share.
  static int64_t now_ns() noexcept {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }

  // `call.counts`, if it has one, is by lists().keep_counts() for this call.
  void add(const TracedCall& call) noexcept {
    TracedCall& slot = calls_[next_];
    if (slot.counts != TraceLists::kNone) lists_.drop_counts(slot.counts);
    slot = call;
    if (++next_ == calls_.size()) next_ = 0;
    ++added_;
  }
  bool keeps_peers() const noexcept { return !peers_.empty(); }
  // The number() of the call that was added last.
  uint32_t last() const noexcept { return static_cast<uint32_t>(added_); }
  // The program waits for this call, which has ended.
  void note_wait(uint32_t number, int64_t now_ns) noexcept {
    const uint64_t before = static_cast<uint32_t>(added_) - number;
    if (before >= kept()) return;
    TracedCall& call = calls_[(next_ + calls_.size() - 1 - before) % calls_.size()];
    if (call.wait_ns == TracedCall::kNever) call.wait_ns = now_ns - call.arrival_ns;
  }
  TraceLists& lists() noexcept { return lists_; }
  const TraceLists& lists() const noexcept { return lists_; }
  // Adds a peer of the call that was added last.
  void add_peer(TracedPeer peer) noexcept {
    peer.call = static_cast<uint32_t>(added_);
    TracedPeer& slot = peers_[next_peer_];
    if (peers_added_ >= peers_.size()) cut_ = slot.call;
    slot = peer;
    if (++next_peer_ == peers_.size()) next_peer_ = 0;
    ++peers_added_;
  }
  uint64_t kept() const noexcept { return std::min<uint64_t>(added_, calls_.size()); }
  // The oldest calls, which others have replaced.
  uint64_t dropped() const noexcept { return added_ - kept(); }
  // From the oldest one that is kept.
  const TracedCall& operator[](uint64_t index) const noexcept {
    return calls_[added_ > calls_.size() ? (next_ + index) % calls_.size() : index];
  }
  // The calls of a rank are numbered.
  uint32_t number(uint64_t index) const noexcept { return static_cast<uint32_t>(dropped() + index + 1); }
  uint64_t peers_kept() const noexcept { return std::min<uint64_t>(peers_added_, peers_.size()); }
  // From the oldest one that is kept, call after call.
  const TracedPeer& peer(uint64_t index) const noexcept {
    return peers_[peers_added_ > peers_.size() ? (next_peer_ + index) % peers_.size() : index];
  }
  // Some peers of the call are kept, and others not.
  bool cut(uint32_t number) const noexcept { return peers_added_ > peers_.size() && number == cut_; }

 private:
  std::vector<TracedCall> calls_;
  std::vector<TracedPeer> peers_;
  size_t next_ = 0;
  uint64_t added_ = 0;
  size_t next_peer_ = 0;
  uint64_t peers_added_ = 0;
  uint32_t cut_ = 0;  // the call whose peer was replaced last
  TraceLists lists_;
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

// The p sizes that this rank knows of an irregular call: those of all ranks, or, of pairs, what it sends to each. nullptr:
// the call is regular, or the root alone knows them.
inline const uint64_t* traced_counts(const Args& args) noexcept {
  if (kCatalog[args.collective].sizes == SizesKnown::kToPairs && args.in_place) return args.recv.counts;
  return args.send.counts ? args.send.counts : args.recv.counts;
}

}  // namespace ibcoll
