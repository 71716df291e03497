// SPDX-License-Identifier: BSD-3-Clause
// How a rank that waits for another of its node leaves the core, where ranks share cores: it subscribes at that rank
// and sleeps. A rank that publishes wakes all subscribers by one system call, as each one that is woken may take the
// core from it.
//
// Neither may miss the other: the sleeper subscribes, then looks once more; the publisher publishes, then looks for
// subscribers. Both change the flag to do so (the publisher by nothing), and changes of one flag have an order: the
// second one sees what the first did, and what it did before. A rank that subscribes while others are being woken has
// read `wakeups` before, so it does not sleep. If a wake-up is lost all the same, by the death of a rank or between the
// threads of one, the sleeper sleeps for its longest time.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>
#include <vector>

namespace ibcoll {

// One rank's, in memory that the ranks of a node share.
struct Bell {
  std::atomic<uint32_t> subscribed;  // 1: another rank sleeps until this one publishes
  std::atomic<uint32_t> wakeups;     // the futex that they sleep on; counts
};

class Doorbell {
 public:
  static constexpr int kNoBell = -1;  // instead of a local rank: none would ring

  // `bells[i]`: of local rank i. `one_cpu`: which all ranks of the node share.
  Doorbell(std::vector<Bell*> bells, int self, bool one_cpu = false)
      : bells_(std::move(bells)), self_(self), one_cpu_(one_cpu) {}

  // ---- the publisher

  // Wakes the subscribers: this rank has just published.
  void ring() noexcept {
    if (own().subscribed.fetch_or(0, std::memory_order_acq_rel) != 0) [[unlikely]]
      wake();
  }

  // A rank that is woken can only take this rank's own core.
  bool one_cpu() const noexcept { return one_cpu_; }

  // ---- the sleeper: subscribe(), look again, sleep() with the result of subscribe(). A subscription that is not used
  // costs the publisher one system call.

  // At local rank `local`, which this one waits for.
  uint32_t subscribe(int local) noexcept {
    const uint32_t wakeups = bell(local).wakeups.load(std::memory_order_acquire);
    bell(local).subscribed.fetch_or(1, std::memory_order_acq_rel);
    return wakeups;
  }
  // Until that rank wakes its subscribers, for `longest_ns` (below a second) at most; returns at once if it has woken
  // them since subscribe(). False: the time has passed.
  bool sleep(int local, uint32_t wakeups, uint32_t longest_ns) noexcept;

  // ---- counts, for ibcoll_info

  uint64_t sleeps() const noexcept { return sleeps_.load(std::memory_order_relaxed); }
  uint64_t times_woken() const noexcept { return times_woken_.load(std::memory_order_relaxed); }
  uint64_t times_others_woken() const noexcept { return times_others_woken_; }

 private:
  Bell& bell(int local) noexcept { return *bells_[static_cast<size_t>(local)]; }
  Bell& own() noexcept { return bell(self_); }
  void wake() noexcept;

  std::vector<Bell*> bells_;
  int self_;
  bool one_cpu_;
  std::atomic<uint64_t> sleeps_{0};  // counted without the context's lock
  std::atomic<uint64_t> times_woken_{0};
  uint64_t times_others_woken_ = 0;
};

}  // namespace ibcoll
