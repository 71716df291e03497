// SPDX-License-Identifier: BSD-3-Clause
// What leaves this rank: records into the rings to others, and puts by process_vm_writev under the guard of an exposure
// that the receiver can revoke.
#pragma once

#include <vector>

#include "runtime/machine/store_choice.h"
#include "runtime/shm/failures.h"
#include "runtime/shm/node_ranks.h"
#include "runtime/shm/record.h"

namespace ibcoll::shm {

class Sender {
 public:
  struct Counters {
    uint64_t messages_sent = 0, single_copies = 0, puts_dropped = 0;
  };

  // Both outlive it.
  Sender(NodeRanks& ranks, Failures& failures);

  // `to`: a local rank. As in the contract.
  bool send(int to, const Note& note, std::span<const std::byte> payload);
  PutResult put(int to, const RemoteRegion& region, std::span<const std::byte> from, const Note& note);
  // Nothing goes to this rank any more, and poll() will report why. `of_this_rank`: what this rank lacks.
  void give_up(int to, Status why, ibcoll_status_t of_this_rank = IBCOLL_OK) noexcept;

  const Counters& counters() const noexcept { return counters_; }
  // Rings that are in use.
  int connections() const noexcept;

 private:
  struct Outgoing {              // to one peer
    PairBlock* block = nullptr;  // nullptr: not open yet, or given up
    std::byte* ring = nullptr;
    uint64_t tail = 0;
    uint64_t head = 0;  // as last seen
  };

  Outgoing* outgoing(int to) noexcept {
    Outgoing& out = outgoing_[static_cast<size_t>(to)];
    return out.block ? &out : open(to);
  }
  Outgoing* open(int to) noexcept;
  std::byte* reserve(Outgoing& out, uint64_t bytes) noexcept;
  void write_record(Outgoing& out, std::byte* at, const Note& note, std::span<const std::byte> payload) noexcept;

  NodeRanks& ranks_;
  Failures& failures_;
  const uint64_t mask_;
  std::vector<Outgoing> outgoing_;
  StoreChoice stores_;  // into the rings of others
  Counters counters_;
};

}  // namespace ibcoll::shm
