// SPDX-License-Identifier: BSD-3-Clause
// The long blocks of scratch memory that the collectives of a context use one after the other. A block that is given
// back is kept for the next one: its pages are there already, and stay pinned. They are memory of user_memory.h, which
// registration caches keep even where nothing reports what is unmapped.
//
// It keeps 32 MB, and where repeated calls need more than that, also what they need, up to 1 GB in all: the second most
// that any of the last 8 runs had at once. A run lasts from the first block that is taken until all are given back. So
// for a single long call it keeps no more, and one that is repeated gets its blocks again. Beyond 1 GB it makes the
// others anew: to get and pin their pages takes less time than such a call takes to fill them over a network.
#pragma once

#include <array>
#include <cstddef>

#include "runtime/base/arena.h"

namespace ibcoll {

class ScratchPool final : public LongBlocks {
 public:
  ScratchPool() = default;
  ScratchPool(const ScratchPool&) = delete;
  ScratchPool& operator=(const ScratchPool&) = delete;
  // All were given back.
  ~ScratchPool() { free_down_to(0, 0); }

  static constexpr size_t kMostIdleBytes = 32 << 20, kMostIdle = 32, kRuns = 8;
  static constexpr size_t kMostIdleBytesOfRuns = 1 << 30;

  // The shortest one that is long enough, unless half of it would do; else a new one.
  void* take(size_t& bytes) noexcept override;
  void give_back(void* block, size_t bytes) noexcept override;
  size_t idle_bytes() const noexcept { return idle_bytes_; }

 private:
  struct Block {
    void* memory;
    size_t bytes;
  };
  void* find_or_make(size_t& bytes) noexcept;
  Block remove(size_t at) noexcept;
  // Those that were given back first.
  void free_down_to(size_t blocks, size_t bytes) noexcept;
  size_t most_idle_bytes() const noexcept;

  std::array<Block, kMostIdle> idle_;  // in the order in which they were given back
  size_t count_ = 0;
  size_t idle_bytes_ = 0;
  size_t used_bytes_ = 0;              // by others
  std::array<size_t, kRuns> peaks_{};  // of used_bytes_, in the last runs
  size_t run_ = 0;                     // the place of the present one
};

}  // namespace ibcoll
