// SPDX-License-Identifier: BSD-3-Clause
// How a rank that has waited long for another of its node gets off the core, where ranks share cores: it leaves word with that
// rank and sleeps; who publishes wakes those who have left word.
//
// Neither may miss the other: the sleeper leaves word, then looks once more; the publisher publishes, then looks for word. Both
// change the word to do so (the publisher by nothing), and changes of one word have an order: who comes second sees what the
// first did, and what it did before. Whatever is lost all the same, by the death of a rank or between the threads of one,
// costs the sleeper its longest sleep.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>
#include <vector>

namespace ibcoll {

// One rank's, in memory that the ranks of a node share.
struct Bell {
  std::atomic<uint64_t> sleepers;  // bit i mod 64: local rank i sleeps until this rank publishes
  std::atomic<uint32_t> rung;      // the rank itself sleeps on this: it changes when somebody wakes it
};

class Doorbell {
 public:
  static constexpr int kNoBell = -1;  // in place of a local rank: nobody would ring

  // `bells[i]`: of local rank i.
  Doorbell(std::vector<Bell*> bells, int self) : bells_(std::move(bells)), self_(self) {}

  // ---- who publishes

  // Wakes who sleeps until this rank publishes, as it just did.
  void ring() noexcept {
    if (own().sleepers.fetch_or(0, std::memory_order_acq_rel) != 0) [[unlikely]]
      wake();
  }

  // ---- who sleeps: leave_word(), look again, sleep() with what leave_word() returned, take_back()

  // For local rank `local`, which this one waits for.
  uint32_t leave_word(int local) noexcept {
    const uint32_t rung = own().rung.load(std::memory_order_acquire);
    bells_[static_cast<size_t>(local)]->sleepers.fetch_or(bit(self_), std::memory_order_acq_rel);
    return rung;
  }
  // Until this rank is woken, at once if it was since leave_word(), or so much time, below a second, has passed. False: that.
  bool sleep(uint32_t rung, uint32_t longest_ns) noexcept;
  // Nobody need wake this rank any more.
  void take_back(int local) noexcept {
    std::atomic<uint64_t>& sleepers = bells_[static_cast<size_t>(local)]->sleepers;
    if (sleepers.load(std::memory_order_relaxed) & bit(self_))
      sleepers.fetch_and(~bit(self_), std::memory_order_relaxed);
  }

  // ---- how often, for ibcoll_info

  uint64_t sleeps() const noexcept { return sleeps_.load(std::memory_order_relaxed); }
  uint64_t times_woken() const noexcept { return times_woken_.load(std::memory_order_relaxed); }
  uint64_t times_others_woken() const noexcept { return times_others_woken_; }

 private:
  static constexpr uint64_t bit(int local) noexcept { return uint64_t{1} << (local % 64); }
  Bell& own() noexcept { return *bells_[static_cast<size_t>(self_)]; }
  void wake() noexcept;

  std::vector<Bell*> bells_;
  int self_;
  std::atomic<uint64_t> sleeps_{0};  // counted without the context's lock
  std::atomic<uint64_t> times_woken_{0};
  uint64_t times_others_woken_ = 0;
};

}  // namespace ibcoll
