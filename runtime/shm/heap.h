// SPDX-License-Identifier: BSD-3-Clause
// Which parts of a node's shared memory are in use: first fit over a short list of free extents, which lies in that
// memory itself. A rank may die at any point in here, and the others continue: the lock names its owner, and a rank
// that finds that the owner has ended takes it over; a change is made in a copy of the list, which replaces the old one
// by a single store. What other processes may have spoiled is checked before it is used.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime/base/status.h"

namespace ibcoll::shm {

class Heap {
 public:
  // Memory of [0, bytes). No allocation lies across a multiple of `unit` bytes, unless it begins at one.
  // Called once, before any other process sees it.
  void prepare(uint64_t bytes, uint64_t unit) noexcept;
  uint64_t unit() const noexcept { return unit_; }
  // The offset of `bytes` bytes that are free. NO_MEMORY; TIMEOUT when another rank holds the lock, perhaps because it
  // is stopped; SYSTEM: a process has written here that should not.
  Result<uint64_t> take(uint64_t bytes) noexcept;
  // Bytes of take(). What cannot be returned, because the list is full or the lock is held, is lost.
  void give_back(uint64_t offset, uint64_t bytes) noexcept;
  // Bytes in use; 0 where the list cannot be read.
  uint64_t used() noexcept;

 private:
  struct Extent {
    uint64_t offset;
    uint64_t bytes;
  };
  struct FreeList {
    static constexpr uint32_t kMostExtents = 1000;
    uint32_t count;
    Extent extents[kMostExtents];  // ascending, never adjacent

    void insert(uint32_t at, Extent extent) noexcept;
    void erase(uint32_t at) noexcept;
  };

  Status lock() noexcept;
  void unlock() noexcept;
  // A copy of the list, to be changed, or nullptr if the list is spoiled; and what makes the copy the list.
  FreeList* draft() noexcept;
  void commit() noexcept { current_.store(1 - current_.load(std::memory_order_relaxed), std::memory_order_release); }
  Status spoiled() const noexcept;

  std::atomic<uint64_t> owner_;  // of the lock: PID, and what of its start time fits; 0: none
  std::atomic<uint32_t> current_;
  uint64_t bytes_;
  uint64_t unit_;
  FreeList lists_[2];
};

}  // namespace ibcoll::shm
