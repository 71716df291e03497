// SPDX-License-Identifier: BSD-3-Clause
// Keeps user memory pinned between uses, because pinning costs more than most messages. Whole pages are pinned; which
// bytes of them a peer may write is enforced elsewhere.
//
// A registration that is in use is never unpinned. One that is not is kept until the limits, a shortage of memory or
// the unmapping of one of its pages ends it. What overlaps without containing may exist side by side.
//
// Stale pages: memory that was unmapped and mapped again has other pages than those that are pinned. So either every
// unmapping is reported to invalidate() before it happens, or Options::keep says which memory may be kept.
//
// One thread at a time, except invalidate().
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>

#include "runtime/base/status.h"
#include "runtime/registration_cache/interval_map.h"
#include "runtime/registration_cache/unmap_queue.h"

namespace ibcoll {

// How memory is pinned: ibv_reg_mr, ucp_mem_map.
class Registrar {
 public:
  virtual ~Registrar() = default;
  // `pages` begin and end on a page boundary. The error says which device and call and why; NO_MEMORY where fewer
  // pinned pages or registrations could help (ENOMEM, the memlock limit).
  virtual Result<void*> pin(std::span<std::byte> pages) = 0;
  virtual void unpin(void* handle) = 0;
};

class Registration {
 public:
  void* handle() const noexcept { return handle_; }  // of Registrar::pin()
  // The pinned pages.
  std::span<std::byte> memory() const noexcept {
    return {reinterpret_cast<std::byte*>(pages_.begin), static_cast<size_t>(pages_.size())};
  }

 private:
  friend class RegistrationCache;
  Interval pages_;
  void* handle_ = nullptr;
  uint32_t references_ = 0;
  bool kept_ = false;  // in the map: for others to find
  Registration* older_ = nullptr;
  Registration* newer_ = nullptr;
};

class RegistrationCache {
 public:
  struct Options {
    // The limits count everything pinned. What is in use may exceed them; what is kept beyond its use never does.
    uint64_t limit_bytes = std::numeric_limits<uint64_t>::max();
    size_t limit_regions = 65536;
    // May this memory stay pinned after its use? Asked on misses only. Empty: all may.
    std::function<bool(std::span<const std::byte>)> keep;
    size_t page_bytes = 0;  // power of two; 0: the system's
  };

  struct Counters {
    uint64_t hits = 0;
    uint64_t misses = 0;         // each is one pin(), or up to three where one failed
    uint64_t evictions = 0;      // unpinned because of the limits or a shortage of memory
    uint64_t invalidations = 0;  // registrations that lost a page
    uint64_t merges = 0;         // registrations that a larger one replaced
    uint64_t failures = 0;       // acquire() that returned an error
    uint64_t shortages = 0;      // acquire() for which memory was short, at first or at all
    uint64_t pinned_bytes = 0;   // now; pages pinned twice count twice
    uint64_t regions = 0;        // now
    uint64_t most_pinned_bytes = 0;
  };

  RegistrationCache(Registrar& registrar, Options options);
  // All must have been released.
  ~RegistrationCache();
  RegistrationCache(const RegistrationCache&) = delete;
  RegistrationCache& operator=(const RegistrationCache&) = delete;

  // A registration that covers `memory`, in use until release(). A hit allocates nothing and takes no lock.
  // INVALID_ARGUMENT: `memory` is empty. Else the error of pin(), with what was asked and what is pinned.
  Result<Registration*> acquire(std::span<std::byte> memory) {
    collect();
    const Interval range = interval(memory);
    if (range.begin < range.end) {
      if (Registration** const found = map_.find(range)) {
        ++counters_.hits;
        if ((*found)->references_++ == 0) unlink(**found);
        return *found;
      }
    }
    return pin_new(memory);
  }
  void release(Registration* registration) noexcept;

  // [address, address + bytes) is about to be unmapped: no later acquire() returns what was pinned there before. Any
  // thread; also inside any call of munmap().
  void invalidate(const void* address, size_t bytes) noexcept {
    unmapped_.push_bytes(reinterpret_cast<uint64_t>(address), bytes);
  }
  void invalidate_all() noexcept { unmapped_.push(UnmapQueue::kEverything); }
  // The queue that invalidate() pushes to.
  UnmapQueue& unmapped() noexcept { return unmapped_; }

  // Unpins what was invalidated and is not in use. acquire() does so itself; a caller that polls may call it to give
  // pages back sooner. One load when there is nothing to do.
  void collect() {
    while (unmapped_.changed()) drain();
  }
  // Unpins all that is not in use.
  void clear() noexcept;

  const Counters& counters() const noexcept { return counters_; }
  const Options& options() const noexcept { return options_; }

 private:
  static Interval interval(std::span<const std::byte> memory) noexcept {
    const auto begin = reinterpret_cast<uint64_t>(memory.data());
    return {begin, begin + memory.size()};
  }
  Interval pages(const Interval& range) const noexcept;
  Interval with_neighbours(const Interval& wanted) const;
  Result<Registration*> pin_new(std::span<std::byte> memory);
  Status pin(Registration& registration, const Interval& pages);
  Status pin_or_make_room(Registration& registration, const Interval& pages, const Interval& wanted);
  Status refused(const Status& why, const Interval& wanted) const;
  void drain();
  void replace_contained(const Interval& pages);
  static void leave_map(Registration& registration, Registration*& unused) noexcept;
  void make_room(uint64_t bytes, size_t regions) noexcept;
  void evict_oldest() noexcept;
  void unpin(Registration* registration) noexcept;
  void unpin_all(Registration* list) noexcept;
  bool has_unused() const noexcept { return unused_.newer_ != &unused_; }
  static void unlink(Registration& registration) noexcept {
    registration.older_->newer_ = registration.newer_;
    registration.newer_->older_ = registration.older_;
    registration.older_ = registration.newer_ = nullptr;
  }

  Registrar& registrar_;
  Options options_;
  IntervalMap<Registration*> map_;
  Registration unused_;  // head of a ring: in the map and not in use; newer_ is the oldest of all
  Counters counters_;
  UnmapQueue unmapped_;
};

}  // namespace ibcoll
