// SPDX-License-Identifier: BSD-3-Clause
// A wait: look until what is awaited is there, rest between looks, stop at the deadline.
//
// One turn:
//   1. Look, up to strategy.spins() times in a row. Done: the wait ends.
//   2. The deadline has passed, or the waiter gives up: the wait ends.
//   3. Rest. Where ranks share cores and the waiter knows whom of its node it waits for, it sleeps until that one rings
//      (doorbell.h), after a while of yields; or at once where all share one processor and the awaited one is a leader.
//      Else it yields, and sleeps once nothing has moved for long; that sleep is at most half a millisecond.
// News (a look that moved something) makes the loop as awake as at its start.
//
// The waiter is a type with these functions, called directly: no virtual call, no allocation. Those in brackets may be
// left out.
//   bool look()               moves what there is to move; true: something moved
//   bool done()               what is awaited is there
//  [bool gave_way()]          called every kLooksPerTurn looks in a row: lets other threads in; false: none wanted
//  [bool gives_up()]          the wait makes no sense any more
//  [auto unlocked(f)]         f(), without the locks that are held while looking; needed where rested() is
//  [void rested(long_wait)]   after each rest; long_wait: time to look for dead peers
//  [Doorbell* doorbell()]     NULL: nobody rings. The next two go with it:
//  [int awaited_bell()]       the local rank that all depends on; negative: none, or sleeping is not right now
//  [bool awaits_leaders()]    what is awaited comes from a leader, which cannot run on another processor
#pragma once

#include <cstdint>
#include <utility>

#include "runtime/base/status.h"
#include "runtime/machine/core_hints.h"
#include "runtime/machine/deadline.h"
#include "runtime/machine/doorbell.h"
#include "runtime/machine/wait_strategy.h"

namespace ibcoll {

class IBCOLL_MODULE_API WaitLoop {
 public:
  enum class End { kDone, kDeadline, kGivenUp };

  // To let others in costs about as much as some looks.
  static constexpr uint32_t kLooksPerTurn = 64;
  // A sleep that a ring ends, ends by itself after so long. Not sooner: most kernels then have no timer to set, as
  // their tick comes before.
  static constexpr uint32_t kLongestBellNs = 4'000'000;

  // The strategy must outlive the loop.
  WaitLoop(const WaitStrategy& strategy, Deadline deadline) noexcept : strategy_(strategy), deadline_(deadline) {}
  WaitLoop(const WaitStrategy&& strategy, Deadline deadline) = delete;

  // Begins with a look.
  template <typename Waiter>
  End run(Waiter& waiter);
  // The same for a waiter of two functions, or one, where the look is a part of done(). False: not before the deadline.
  template <typename Done, typename Look>
  bool until(Done done, Look look);
  template <typename Done>
  bool until(Done done) {
    return until(std::move(done), [] { return false; });
  }

  // ---- the parts of a turn

  // There is news.
  void fresh() noexcept {
    rests_ = 0;
    tired_at_ = 0;
  }
  // A yield, or a sleep. True when the rank has waited for long: time to look for dead peers.
  bool pause() noexcept;
  // True when the rank had better sleep until it is woken, where somebody would wake it: it has yielded for so long,
  // or waits `for_a_leader` that only it keeps from the core.
  bool tired(bool for_a_leader) noexcept;
  // Instead of pause(): the rank has slept so, and was woken or not. Returns what pause() does.
  bool slept(bool woken) noexcept;

 private:
  template <typename Waiter>
  bool rest(Waiter& waiter);
  template <typename Waiter>
  bool sleep_until_rung(Waiter& waiter, Doorbell& doorbell, int awaited);

  const WaitStrategy& strategy_;
  const Deadline deadline_;
  uint32_t rests_ = 0;     // since the last news
  uint32_t sleeps_ = 0;    // until a ring, of this wait, however they ended
  uint64_t tired_at_ = 0;  // nanoseconds; 0: not known yet
};

template <typename Waiter>
WaitLoop::End WaitLoop::run(Waiter& waiter) {
  for (;;) {
    bool news = false;
    for (uint32_t i = 0; i < strategy_.spins(); ++i) {
      news = waiter.look();
      if (news) fresh();
      if (waiter.done()) return End::kDone;
      if constexpr (requires { waiter.gave_way(); })
        if (i % kLooksPerTurn == kLooksPerTurn - 1 && waiter.gave_way() && waiter.done()) return End::kDone;
      relax();
    }
    if (deadline_.passed()) return End::kDeadline;
    if constexpr (requires { waiter.gives_up(); })
      if (waiter.gives_up()) return End::kGivenUp;
    if (news && !strategy_.rests_after_news()) continue;
    [[maybe_unused]] const bool long_wait = rest(waiter);
    if constexpr (requires { waiter.rested(long_wait); }) {
      if (waiter.done()) return End::kDone;
      waiter.rested(long_wait);
    }
  }
}

template <typename Waiter>
bool WaitLoop::rest(Waiter& waiter) {
  if constexpr (requires { waiter.doorbell(); }) {
    Doorbell* const doorbell = waiter.doorbell();
    if (doorbell && tired(waiter.awaits_leaders()))
      if (const int awaited = waiter.awaited_bell(); awaited >= 0) return sleep_until_rung(waiter, *doorbell, awaited);
  }
  if constexpr (requires { waiter.unlocked([] { return false; }); })
    return waiter.unlocked([this] { return pause(); });
  else
    return pause();
}

// Between leaving word and sleeping it looks once more: what came before the word was left rings for nobody.
template <typename Waiter>
bool WaitLoop::sleep_until_rung(Waiter& waiter, Doorbell& doorbell, int awaited) {
  const uint32_t rung = doorbell.leave_word(awaited);
  bool news = waiter.look() || waiter.awaited_bell() != awaited;
  if (!news) {
    const auto longest_ns = static_cast<uint32_t>(deadline_.left_ns(kLongestBellNs));
    news = waiter.unlocked([&] { return doorbell.sleep(awaited, rung, longest_ns); });
  }
  return slept(news);
}

template <typename Done, typename Look>
bool WaitLoop::until(Done done, Look look) {
  struct {
    Done done;
    Look look;
  } waiter{std::move(done), std::move(look)};
  return waiter.done() || run(waiter) == End::kDone;
}

}  // namespace ibcoll
