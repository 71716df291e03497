// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/machine/wait_loop.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace ibcoll {
namespace {

using End = WaitLoop::End;
using Clock = std::chrono::steady_clock;
constexpr uint64_t kMillisecond = 1'000'000;
constexpr WaitStrategy kShortSleeps = WaitStrategy::sleeping(100'000);

// ---- the parts of a turn

// Whatever the mode: the time to look for dead peers comes, again and again.
TEST(WaitLoop, LongWaitsAreTold) {
  for (const char* const mode : {"auto", "spin", "yield", "sleep"}) {
    const WaitStrategy strategy(mode, 1.0);
    WaitLoop loop(strategy, Deadline::never());
    const auto end = Clock::now() + std::chrono::seconds(120);  // each yield may be a time slice of all others
    int long_waits = 0;
    while (long_waits < 2 && Clock::now() < end) long_waits += loop.pause();
    EXPECT_EQ(long_waits, 2) << mode;
  }
}

TEST(WaitLoop, TiredOnlyOfYieldingForAWhile) {
  for (const char* const mode : {"auto", "spin"}) {
    const WaitStrategy strategy(mode, 4.0);
    WaitLoop loop(strategy, Deadline::never());
    for (int round = 0; round < 2; ++round) {
      EXPECT_FALSE(loop.should_sleep(/*for_a_leader=*/false)) << mode;
      EXPECT_FALSE(loop.should_sleep(/*for_a_leader=*/true)) << mode << ": the leader may come to another processor";
      const std::chrono::milliseconds timeout(mode == std::string("spin") ? 100 : 120'000);
      const auto end = Clock::now() + timeout;
      while (!loop.should_sleep(false) && Clock::now() < end) loop.pause();
      EXPECT_EQ(loop.should_sleep(false), std::string(mode) != "spin");
      loop.slept(/*woken=*/true);  // all anew
    }
    int long_waits = 0;
    for (int i = 0; i < 100; ++i) long_waits += loop.slept(/*woken=*/false);
    EXPECT_GE(long_waits, 5) << "it looks for dead peers now and then";
    EXPECT_LE(long_waits, 20);
  }
}

TEST(WaitLoop, TiredAtOnceOfKeepingALeaderFromTheOnlyProcessor) {
  for (const char* const mode : {"auto", "spin"}) {
    const WaitStrategy strategy(mode, 4.0, /*one_cpu=*/true);
    WaitLoop loop(strategy, Deadline::never());
    EXPECT_EQ(loop.should_sleep(/*for_a_leader=*/true), std::string(mode) != "spin");
    EXPECT_FALSE(loop.should_sleep(/*for_a_leader=*/false)) << mode;
  }
}

TEST(WaitLoop, SleepsEndSoonAndBeginAgainAfterProgress) {
  const WaitStrategy strategy("sleep", 1.0);
  WaitLoop loop(strategy, Deadline::never());
  for (int i = 0; i < 200; ++i) loop.pause();  // as long as they get
  const auto begin = Clock::now();
  for (int i = 0; i < 10; ++i) loop.pause();
  EXPECT_GE(Clock::now() - begin, std::chrono::microseconds(10 * 400));
  EXPECT_TRUE(loop.pause() && loop.pause()) << "each is long enough to look for dead peers";
  loop.fresh();
  EXPECT_FALSE(loop.pause());
}

// ---- deadlines

TEST(Deadline, PassesWhenItsTimeHasCome) {
  EXPECT_TRUE(Deadline::after_ns(0).passed());
  EXPECT_FALSE(Deadline::after_ns(1'000'000 * kMillisecond).passed());
  EXPECT_FALSE(Deadline::never().passed());
  EXPECT_TRUE(Deadline(Clock::now() - std::chrono::seconds(1)).passed());
}

TEST(Deadline, SaysHowMuchTimeIsLeft) {
  EXPECT_EQ(Deadline(Clock::now() - std::chrono::seconds(1)).left_ns(7), 0u);
  EXPECT_EQ(Deadline::never().left_ns(7), 7u);
  EXPECT_EQ(Deadline::after_ns(1'000'000 * kMillisecond).left_ns(7), 7u);
  const uint64_t left = Deadline::after_ns(1'000'000 * kMillisecond).left_ns(5'000'000 * kMillisecond);
  EXPECT_LE(left, 1'000'000 * kMillisecond);
  EXPECT_GT(left, 0u);
}

// ---- plain waits

TEST(WaitLoop, WhatIsThereAtOnceIsNotLookedFor) {
  int looks = 0;
  EXPECT_TRUE(WaitLoop(kShortSleeps, Deadline::after_ns(0)).until([] { return true; }, [&] { return ++looks > 0; }));
  EXPECT_EQ(looks, 0);
}

TEST(WaitLoop, ItEndsAtTheDeadlineAndNotBefore) {
  const auto begin = Clock::now();
  int looks = 0;
  const auto never = [&] { return ++looks < 0; };
  EXPECT_FALSE(WaitLoop(kShortSleeps, Deadline::after_ns(5 * kMillisecond)).until(never));
  EXPECT_GE(Clock::now() - begin, std::chrono::milliseconds(5));
  EXPECT_LE(looks, 55) << "it sleeps between looks";
}

// Even when all deadlines have passed, as after a SIGSTOP: what came meanwhile counts.
TEST(WaitLoop, ItLooksOnceMoreBeforeItGivesUp) {
  bool come = false;
  EXPECT_TRUE(WaitLoop(kShortSleeps, Deadline::after_ns(0)).until([&] { return come; }, [&] { return come = true; }));
}

TEST(WaitLoop, ItDoesNotSleepWhileThereIsNews) {
  constexpr WaitStrategy long_sleeps = WaitStrategy::sleeping(4'000'000'000);
  int looks = 0;
  const auto begin = Clock::now();
  EXPECT_TRUE(WaitLoop(long_sleeps, Deadline::after_ns(60'000 * kMillisecond))
                  .until([&] { return looks == 10; }, [&] { return ++looks > 0; }));
  EXPECT_LT(Clock::now() - begin, std::chrono::milliseconds(3'900)) << "no sleep is shorter than 4 s";
}

// ---- a waiter with all functions

struct Waiter {
  explicit Waiter(Doorbell* doorbell = nullptr) : bell(doorbell) {}
  bool look() {
    EXPECT_TRUE(locked);
    ++looks;
    return looks == news_at;
  }
  bool done() const { return looks >= done_at; }
  bool gave_way() {
    ++ways;
    return true;
  }
  bool gives_up() const { return looks >= gives_up_at; }
  template <typename F>
  auto unlocked(F f) {
    locked = false;
    const bool result = f();
    locked = true;
    return result;
  }
  void rested(bool long_wait) {
    EXPECT_TRUE(locked);
    ++rests;
    long_waits += long_wait;
  }
  Doorbell* doorbell() { return bell; }
  int awaited_bell() const { return awaited; }
  bool awaits_leaders() const { return leaders; }

  Doorbell* bell;
  int awaited = Doorbell::kNoBell;
  bool leaders = false;
  bool locked = true;
  int looks = 0, ways = 0, rests = 0, long_waits = 0;
  int news_at = -1, done_at = 1 << 30, gives_up_at = 1 << 30;
};

TEST(WaitLoop, TheWaiterMayGiveUp) {
  Waiter waiter;
  waiter.gives_up_at = 3;
  EXPECT_EQ(WaitLoop(kShortSleeps, Deadline::never()).run(waiter), End::kGivenUp);
  EXPECT_EQ(waiter.looks, 3);
  EXPECT_EQ(waiter.rests, 2);
}

TEST(WaitLoop, TheDeadlineComesFirst) {
  Waiter waiter;
  waiter.gives_up_at = 1;
  EXPECT_EQ(WaitLoop(kShortSleeps, Deadline::after_ns(0)).run(waiter), End::kDeadline);
  waiter.done_at = 1;
  EXPECT_EQ(WaitLoop(kShortSleeps, Deadline::after_ns(0)).run(waiter), End::kDone);
}

TEST(WaitLoop, ASpinnerLetsOthersIn) {
  const WaitStrategy strategy("spin", 1.0);
  Waiter waiter;
  waiter.done_at = 10 * static_cast<int>(WaitLoop::kLooksPerUnlock) + 1;
  EXPECT_EQ(WaitLoop(strategy, Deadline::never()).run(waiter), End::kDone);
  EXPECT_EQ(waiter.ways, 10);
  EXPECT_EQ(waiter.rests, 0);
}

// Ranks that share a core rest after each look, news or not.
TEST(WaitLoop, ARankRestsAlsoAfterNews) {
  const WaitStrategy strategy("auto", 4.0);
  Waiter waiter;
  waiter.news_at = 2;
  waiter.done_at = 4;
  EXPECT_EQ(WaitLoop(strategy, Deadline::never()).run(waiter), End::kDone);
  EXPECT_EQ(waiter.rests, 3);
}

// ---- with a host

struct WaiterWithHost : Waiter {
  using Waiter::Waiter;
  bool has_host() const { return true; }
  bool advance_host() {
    ++turns;
    return turns <= moves;
  }
  int turns = 0, moves = 0;  // the first turns move something
};

TEST(WaitLoop, AShortWaitCostsTheHostNothing) {
  const WaitStrategy strategy("auto", 4.0);
  WaiterWithHost waiter;
  waiter.done_at = 1;
  EXPECT_EQ(WaitLoop(strategy, Deadline::never()).run(waiter), End::kDone);
  EXPECT_EQ(WaitLoop(strategy, Deadline::after_ns(0)).run(waiter), End::kDone);
  EXPECT_EQ(waiter.turns, 0);
}

// In each mode, and not at each look.
TEST(WaitLoop, TheHostHasATurnInEachSlice) {
  for (const char* const mode : {"auto", "spin", "yield", "sleep"}) {
    const WaitStrategy strategy(mode, 4.0);
    WaiterWithHost waiter;
    const auto begin = Clock::now();
    EXPECT_EQ(WaitLoop(strategy, Deadline::after_ns(100 * kMillisecond)).run(waiter), End::kDeadline);
    const auto slices = (Clock::now() - begin) / std::chrono::nanoseconds(WaitLoop::kHostSliceNs);
    EXPECT_GE(waiter.turns, 10) << mode;
    EXPECT_LE(waiter.turns, (strategy.spins() > 1 ? slices : slices / WaitLoop::kOnSharedCore) + 1) << mode;
    if (mode == std::string("sleep")) {
      EXPECT_LE(waiter.looks, 3 * slices + 100) << "it sleeps between turns";
    }
  }
}

TEST(WaitLoop, AHostThatMovesHasItsNextTurnAtOnce) {
  const WaitStrategy strategy("auto", 4.0);
  WaiterWithHost waiter;
  waiter.moves = 1'000'000'000;
  EXPECT_EQ(WaitLoop(strategy, Deadline::after_ns(20 * kMillisecond)).run(waiter), End::kDeadline);
  EXPECT_GE(waiter.turns, waiter.looks - 1 - waiter.looks / 2) << "as soon as the wait has lasted for a while";
  EXPECT_GT(waiter.rests, 0) << "others have the core all the same";
}

// ---- sleeping until a ring

class AsleepForARing : public ::testing::Test {
 protected:
  Bell bells_[2] = {};
  Doorbell sleeper_{{&bells_[0], &bells_[1]}, 0}, publisher_{{&bells_[0], &bells_[1]}, 1};
  const WaitStrategy strategy_{"auto", 4.0, /*one_cpu=*/true};
};

TEST_F(AsleepForARing, ItSleepsAtOnceForALeader) {
  Waiter waiter(&sleeper_);
  waiter.awaited = 1;
  waiter.leaders = true;
  waiter.done_at = 3;  // in the pass and after subscribing, then after the sleep
  EXPECT_EQ(WaitLoop(strategy_, Deadline::never()).run(waiter), End::kDone);
  EXPECT_EQ(sleeper_.sleeps(), 1u);
  EXPECT_EQ(bells_[1].subscribed.load(), 1u);
}

TEST_F(AsleepForARing, NewsAfterItSubscribedKeepsItAwake) {
  Waiter waiter(&sleeper_);
  waiter.awaited = 1;
  waiter.leaders = true;
  waiter.news_at = 2;
  waiter.done_at = 3;
  EXPECT_EQ(WaitLoop(strategy_, Deadline::never()).run(waiter), End::kDone);
  EXPECT_EQ(bells_[1].subscribed.load(), 1u) << "it has subscribed";
  EXPECT_EQ(sleeper_.sleeps(), 0u);
}

TEST_F(AsleepForARing, WithAHostNoLongerThanASlice) {
  WaiterWithHost waiter(&sleeper_);
  waiter.awaited = 1;
  waiter.leaders = true;
  const auto begin = Clock::now();
  EXPECT_EQ(WaitLoop(strategy_, Deadline::after_ns(200 * kMillisecond)).run(waiter), End::kDeadline);
  const auto bells = static_cast<uint64_t>((Clock::now() - begin) / std::chrono::nanoseconds(WaitLoop::kLongestBellNs));
  EXPECT_GT(sleeper_.sleeps(), 2 * bells) << "a sleep of " << WaitLoop::kLongestBellNs << " ns is too long";
  EXPECT_GE(waiter.turns, 10);
}

TEST_F(AsleepForARing, ItDoesNotSleepWhileTheHostMoves) {
  WaiterWithHost waiter(&sleeper_);
  waiter.awaited = 1;
  waiter.leaders = true;
  waiter.moves = 1'000'000'000;
  EXPECT_EQ(WaitLoop(strategy_, Deadline::after_ns(50 * kMillisecond)).run(waiter), End::kDeadline);
  EXPECT_LE(sleeper_.sleeps(), 2u) << "but before the host's first turn";
}

TEST_F(AsleepForARing, NobodyIsAwaitedByName) {
  Waiter waiter(&sleeper_);
  waiter.leaders = true;
  waiter.done_at = 5;
  EXPECT_EQ(WaitLoop(strategy_, Deadline::never()).run(waiter), End::kDone);
  EXPECT_EQ(bells_[1].subscribed.load(), 0u);
  EXPECT_EQ(sleeper_.sleeps(), 0u);
}

TEST_F(AsleepForARing, SleepsThatNobodyEndsAreLongWaits) {
  Waiter waiter(&sleeper_);
  waiter.awaited = 1;
  waiter.leaders = true;
  EXPECT_EQ(WaitLoop(strategy_, Deadline::after_ns(400 * kMillisecond)).run(waiter), End::kDeadline);
  EXPECT_GE(waiter.long_waits, 1);
  EXPECT_GT(waiter.rests, waiter.long_waits);
  EXPECT_EQ(sleeper_.times_woken(), 0u);
}

}  // namespace
}  // namespace ibcoll
