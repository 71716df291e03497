// SPDX-License-Identifier: BSD-3-Clause
// Takes messages from the rings of the other ranks, and notices which ranks are gone.
#pragma once

#include <vector>

#include "runtime/shm/failures.h"
#include "runtime/shm/node_ranks.h"
#include "runtime/shm/record.h"
#include "runtime/shm/sender.h"

namespace ibcoll::shm {

class Receiver {
 public:
  // All outlive it.
  Receiver(NodeRanks& ranks, Failures& failures, Sender& sender);

  // As in the contract.
  size_t poll(std::span<Event> events);

 private:
  struct Incoming {  // from one peer
    int local = -1;
    int job = -1;
    PairBlock* block = nullptr;
    const std::byte* ring = nullptr;
    uint64_t head = 0;
    bool taken = false;    // since the last poll: head must be published
    bool spoiled = false;  // nothing more is taken
  };

  void find_senders();
  size_t take(Incoming& in, std::span<Event> events) noexcept;
  void spoiled(Incoming& in) noexcept;
  size_t report_failures(std::span<Event> events, bool of_this_rank);

  NodeRanks& ranks_;
  Failures& failures_;
  Sender& sender_;
  const uint64_t mask_;
  const uint64_t slot_bytes_;
  const std::atomic<int32_t>& open_count_;  // of this rank
  std::vector<Incoming> incoming_;
  int seen_open_count_ = 0;
  size_t next_incoming_ = 0;
};

}  // namespace ibcoll::shm
