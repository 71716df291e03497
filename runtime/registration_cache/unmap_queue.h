// SPDX-License-Identifier: BSD-3-Clause
// Address ranges that were unmapped, from any thread to the one that owns a registration cache. push() may run inside
// munmap(), called by the owner itself in the middle of something: it takes no lock, allocates nothing and never waits.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <thread>

#include "runtime/registration_cache/interval_map.h"

namespace ibcoll {

class UnmapQueue {
 public:
  // More than this many between two drains count as one unmapping of everything.
  static constexpr size_t kPlaces = 1024;
  static constexpr Interval kEverything{0, std::numeric_limits<uint64_t>::max()};

  // Any thread. What is pushed before an unmapping is seen by every changed() that comes after it.
  void push(const Interval& range) noexcept {
    uint64_t place = claimed_.load(std::memory_order_relaxed);
    do {
      // Signed: others may have claimed and taken more since `place` was read; then it is read anew.
      const auto ahead = static_cast<int64_t>(place - taken_.load(std::memory_order_acquire));
      if (ahead >= static_cast<int64_t>(kPlaces)) {
        overflowed_.store(true, std::memory_order_relaxed);
        events_.fetch_add(1, std::memory_order_release);
        return;
      }
    } while (!claimed_.compare_exchange_weak(place, place + 1, std::memory_order_relaxed));
    Slot& slot = slots_[place % kPlaces];
    slot.range = range;
    slot.filled.store(place + 1, std::memory_order_release);
    events_.fetch_add(1, std::memory_order_release);  // last: a thread that sees the count finds the range
  }

  void push_bytes(uint64_t begin, uint64_t bytes) noexcept {
    const uint64_t end = bytes > kEverything.end - begin ? kEverything.end : begin + bytes;
    if (begin < end) push({begin, end});
  }

  // The owner only: has anything come since the last drain()? One load.
  bool changed() const noexcept { return events_.load(std::memory_order_acquire) != seen_; }

  // The owner only: calls apply(range) for each. `apply` may cause pushes; the next drain() finds them.
  template <typename Apply>
  void drain(Apply apply) {
    seen_ = events_.load(std::memory_order_acquire);
    const uint64_t end = claimed_.load(std::memory_order_relaxed);
    for (uint64_t place = taken_.load(std::memory_order_relaxed); place != end; ++place) {
      Slot& slot = slots_[place % kPlaces];
      // Another thread is between two stores of push(): moments.
      while (slot.filled.load(std::memory_order_acquire) != place + 1) std::this_thread::yield();
      const Interval range = slot.range;
      taken_.store(place + 1, std::memory_order_release);
      apply(range);
    }
    if (overflowed_.exchange(false, std::memory_order_relaxed)) apply(kEverything);
  }

 private:
  struct Slot {
    Interval range;
    std::atomic<uint64_t> filled{0};  // number of the push, from 1
  };

  std::atomic<uint64_t> events_{0};  // pushes that are complete, those that found no slot included
  uint64_t seen_ = 0;
  std::atomic<uint64_t> claimed_{0};
  std::atomic<uint64_t> taken_{0};
  std::atomic<bool> overflowed_{false};
  std::array<Slot, kPlaces> slots_;
};

}  // namespace ibcoll
