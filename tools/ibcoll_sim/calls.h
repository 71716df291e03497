// SPDX-License-Identifier: BSD-3-Clause
// The arguments of all ranks of a call. With bytes: the oracle's buffers, verified afterwards. Without: one stretch of
// addresses stands for the buffers of all ranks, and lists of sizes that are the same on all ranks are there once.
#pragma once

#include <cstddef>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/collectives/framework/args.h"
#include "tools/oracle/call_case.h"

namespace ibcoll::simulator {

// Addresses without memory, which the kernel provides at the first write.
class Addresses {
 public:
  explicit Addresses(uint64_t bytes);
  ~Addresses();
  Addresses(const Addresses&) = delete;
  Addresses& operator=(const Addresses&) = delete;
  // NO_MEMORY where the kernel does not give that many.
  const Status& status() const { return status_; }
  std::span<std::byte> all() const { return all_; }

 private:
  std::span<std::byte> all_;
  Status status_;
};

// Irregular blocks, one after the other.
struct BlockList {
  std::vector<uint64_t> counts, displacements;
  void add(uint64_t bytes) {
    displacements.push_back(counts.empty() ? 0 : displacements.back() + counts.back());
    counts.push_back(bytes);
  }
};

// The blocks of all ranks, where all ranks know them, or the root does; else empty.
BlockList known_blocks(const oracle::CallParams& params);
// What a rank sends to each, and receives from each, where only pairs of ranks know that; else empty.
struct PairLists {
  BlockList sends, receives;
};
PairLists pair_lists(const oracle::CallParams& params, int rank);
// Bytes of the largest buffers of any rank, the send buffer first.
struct Extents {
  uint64_t send = 0, recv = 0;
};
Extents extents_of(const oracle::CallParams& params);
// The arguments of a rank whose buffers are at these addresses, without memory. The lists outlive them.
Result<Args> args_at(const oracle::CallParams& params, int rank, std::byte* send, std::byte* recv,
                     const BlockList& known, const PairLists& pairs);

class Calls {
 public:
  // Fails where the blocks do not fit into the address space, or with bytes not into `most_bytes` of memory.
  static Status possible(const oracle::CallParams& params, bool with_bytes);
  // Memory that lists of sizes take in all, without bytes.
  static uint64_t list_bytes(const oracle::CallParams& params);
  Calls(oracle::CallParams params, bool with_bytes);

  std::span<std::byte> nothing() const { return addresses_.all(); }
  const Status& status() const { return addresses_.status(); }
  Result<Args> args(int rank);
  // With bytes.
  void fill(int rank) { cases_[static_cast<size_t>(rank)].fill(1); }
  oracle::Damage damage(int rank) const { return cases_[static_cast<size_t>(rank)].damage(1); }

 private:
  oracle::CallParams params_;
  bool with_bytes_;
  Addresses addresses_;
  uint64_t send_bytes_;                 // of the addresses
  std::deque<oracle::CallCase> cases_;  // with bytes
  BlockList known_;
  std::deque<PairLists> of_pairs_;  // of each rank
};

}  // namespace ibcoll::simulator
