// SPDX-License-Identifier: BSD-3-Clause
// A wait: look until the awaited event has come, rest between looks, stop at the deadline.
//
// One pass:
//   1. Look, up to strategy.spins() times in a row. Done: the wait ends.
//   2. The deadline has passed, or the waiter gives up: the wait ends.
//   3. If a host waits with the waiter, it may progress: once the wait has lasted for a while, then at most every time
//      slice, and again at once while it moves something.
//   4. Rest. If ranks share cores and the waiter knows which rank of its node it waits for, it sleeps until that one
//      rings (doorbell.h), after some yields; or at once if all share one processor and the awaited one is a leader.
//      Else it yields, and sleeps when nothing has moved for long; that sleep is at most half a millisecond. With a
//      host no rest is longer than a time slice.
// After a look that moved something the loop spins and yields as at its start.
//
// The waiter is a type with these functions, called directly: no virtual call, no allocation. Those in brackets are
// optional.
//   bool look()               moves what can be moved; true: something moved
//   bool done()               the awaited event has come
//  [bool gave_way()]          called every kLooksPerUnlock looks in a row: lets other threads in; false: none wanted
//  [bool gives_up()]          the wait cannot succeed any more
//  [auto unlocked(f)]         f(), without the locks that are held while looking; needed if there is rested()
//  [void rested(long_wait)]   after each rest; long_wait: time to check for dead peers
//  [bool has_host()]          there is a host. With it:
//  [bool advance_host()]      lets it progress, without the locks; true: it moved something
//  [Doorbell* doorbell()]     NULL: no rank rings. The next two go with it:
//  [int awaited_bell()]       the local rank that this one waits for; negative: none, or it must not sleep now
//  [bool awaits_leaders()]    the awaited event comes from a leader, which cannot run on another processor
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

  // Letting other threads in costs about as much as some looks.
  static constexpr uint32_t kLooksPerUnlock = 64;
  // The longest sleep until a ring. Not shorter: with this most kernels set no timer, as their tick comes before.
  static constexpr uint32_t kLongestBellNs = 4'000'000;
  // Polling two libraries alternately makes each slow: a barrier of 4 ranks on 2 cores takes 13.5 us so, and 2.9 us
  // with time slices.
  static constexpr uint32_t kHostSliceNs = 200'000;
  // Most waits are over by then, and cost the host nothing.
  static constexpr uint32_t kBeforeHostNs = 50'000;
  // Both are longer where ranks share a core, which has to run the hosts of all of them. A barrier of 16 ranks on 4
  // emulated nodes and 2 cores takes 125 us without this, and 90 us with it; 85 us without a host.
  static constexpr uint32_t kOnSharedCore = 4;

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

  // ---- the parts of a pass

  // Something moved.
  void fresh() noexcept {
    rests_ = 0;
    sleep_at_ = 0;
  }
  // A yield, or a sleep. True when the rank has waited for long: time to look for dead peers.
  bool pause() noexcept;
  // True if the rank should sleep until it is woken, provided that a rank would wake it: it has yielded for long, or
  // waits `for_a_leader` that only it keeps from the core.
  bool should_sleep(bool for_a_leader) noexcept;
  // Instead of pause(): the rank has slept, and was woken or not. Returns what pause() does.
  bool slept(bool woken) noexcept;

  // The host may progress now. The first call of a wait decides when that will be.
  bool host_is_due() noexcept;
  // The host has progressed.
  void host_progressed(bool moved) noexcept;
  // With a host: no rest is longer.
  void rest_in_slices() noexcept { longest_rest_ns_ = host_factor() * kHostSliceNs; }

 private:
  template <typename Waiter>
  bool serve_host(Waiter& waiter);
  template <typename Waiter>
  bool rest(Waiter& waiter, bool may_sleep);
  template <typename Waiter>
  bool sleep_until_woken(Waiter& waiter, Doorbell& doorbell, int awaited);

  uint32_t host_factor() const noexcept { return strategy_.spins() > 1 ? 1 : kOnSharedCore; }

  const WaitStrategy& strategy_;
  const Deadline deadline_;
  uint32_t rests_ = 0;     // since something moved
  uint32_t sleeps_ = 0;    // until woken, of this wait, however they ended
  uint64_t sleep_at_ = 0;  // nanoseconds; 0: not known yet
  uint64_t host_at_ = 0;   // likewise
  uint32_t longest_rest_ns_ = kLongestBellNs;
};

template <typename Waiter>
WaitLoop::End WaitLoop::run(Waiter& waiter) {
  if constexpr (requires { waiter.has_host(); })
    if (waiter.has_host()) rest_in_slices();
  for (;;) {
    bool news = false;
    for (uint32_t i = 0; i < strategy_.spins(); ++i) {
      news = waiter.look();
      if (news) fresh();
      if (waiter.done()) return End::kDone;
      if constexpr (requires { waiter.gave_way(); })
        if (i % kLooksPerUnlock == kLooksPerUnlock - 1 && waiter.gave_way() && waiter.done()) return End::kDone;
      relax();
    }
    if (deadline_.passed()) return End::kDeadline;
    if constexpr (requires { waiter.gives_up(); })
      if (waiter.gives_up()) return End::kGivenUp;
    const bool host_moved = serve_host(waiter);
    if (host_moved && waiter.done()) return End::kDone;
    if (news && !strategy_.rests_after_news()) continue;
    [[maybe_unused]] const bool long_wait = rest(waiter, !host_moved);
    if constexpr (requires { waiter.rested(long_wait); }) {
      if (waiter.done()) return End::kDone;
      waiter.rested(long_wait);
    }
  }
}

// If the host moved something, this rank does not rest.
template <typename Waiter>
bool WaitLoop::serve_host([[maybe_unused]] Waiter& waiter) {
  if constexpr (requires { waiter.has_host(); }) {
    if (!waiter.has_host() || !host_is_due()) return false;
    const bool moved = waiter.advance_host();
    host_progressed(moved);
    return moved;
  }
  return false;
}

template <typename Waiter>
bool WaitLoop::rest(Waiter& waiter, [[maybe_unused]] bool may_sleep) {
  if constexpr (requires { waiter.doorbell(); }) {
    Doorbell* const doorbell = may_sleep ? waiter.doorbell() : nullptr;
    if (doorbell && should_sleep(waiter.awaits_leaders()))
      if (const int awaited = waiter.awaited_bell(); awaited >= 0) return sleep_until_woken(waiter, *doorbell, awaited);
  }
  if constexpr (requires { waiter.unlocked([] { return false; }); })
    return waiter.unlocked([this] { return pause(); });
  else
    return pause();
}

// Looks once more between subscribing and sleeping: what came before the subscription wakes no one.
template <typename Waiter>
bool WaitLoop::sleep_until_woken(Waiter& waiter, Doorbell& doorbell, int awaited) {
  const uint32_t wakeups = doorbell.subscribe(awaited);
  bool news = waiter.look() || waiter.awaited_bell() != awaited;
  if (!news) {
    const auto longest_ns = static_cast<uint32_t>(deadline_.left_ns(longest_rest_ns_));
    news = waiter.unlocked([&] { return doorbell.sleep(awaited, wakeups, longest_ns); });
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
