// SPDX-License-Identifier: BSD-3-Clause
// How a rank that waits for another of its node gets off the core, where ranks share cores: it leaves word with that
// rank and sleeps; who publishes wakes all who have left word, by one system call, as each one that is woken may take
// the core from it.
//
// Neither may miss the other: the sleeper leaves word, then looks once more; the publisher publishes, then looks for
// word. Both change the word to do so (the publisher by nothing), and changes of one word have an order: who comes
// second sees what the first did, and what it did before. Who leaves word while others are being woken has read `rung`
// before, so that it does not sleep. Whatever is lost all the same, by the death of a rank or between the threads of
// one, costs the sleeper its longest sleep.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>
#include <vector>

namespace ibcoll {

// One rank's, in memory that the ranks of a node share.
struct Bell {
  std::atomic<uint32_t> word;  // 1: somebody sleeps until this rank publishes
  std::atomic<uint32_t> rung;  // what they sleep on: it changes when this rank wakes them
};

class Doorbell {
 public:
  static constexpr int kNoBell = -1;  // in place of a local rank: nobody would ring

  // `bells[i]`: of local rank i. `one_cpu`: which all ranks of the node share.
  Doorbell(std::vector<Bell*> bells, int self, bool one_cpu = false)
      : bells_(std::move(bells)), self_(self), one_cpu_(one_cpu) {}

  // ---- who publishes

  // Wakes who sleeps until this rank publishes, as it just did.
  void ring() noexcept {
    if (own().word.fetch_or(0, std::memory_order_acq_rel) != 0) [[unlikely]]
      wake();
  }

  // Whom this rank wakes can only take its own core from it.
  bool one_cpu() const noexcept { return one_cpu_; }

  // ---- who sleeps: leave_word(), look again, sleep() with what leave_word() returned. Word that is left in vain costs
  // the publisher one system call.

  // With local rank `local`, which this one waits for.
  uint32_t leave_word(int local) noexcept {
    const uint32_t rung = bell(local).rung.load(std::memory_order_acquire);
    bell(local).word.fetch_or(1, std::memory_order_acq_rel);
    return rung;
  }
  // Until that rank wakes those who wait for it, at once if it did since leave_word(), or so much time, below a second,
  // has passed. False: that.
  bool sleep(int local, uint32_t rung, uint32_t longest_ns) noexcept;

  // ---- how often, for ibcoll_info

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
