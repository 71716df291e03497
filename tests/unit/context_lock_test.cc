// SPDX-License-Identifier: BSD-3-Clause
// A context's lock, in a process with one thread, with several, and in one that gets its second thread meanwhile.
#include "runtime/context/context_lock.h"

#include <gtest/gtest.h>
#include <sys/single_threaded.h>

#include <atomic>
#include <cstdlib>
#include <thread>
#include <vector>

namespace ibcoll {
namespace {

TEST(ContextLock, ATryDoesNotWait) {
  ContextLock lock;
  const ContextLock::Guard holds = lock.enter();
  EXPECT_FALSE(lock.try_enter().owns_lock());
  std::thread([&] { EXPECT_FALSE(lock.try_enter().owns_lock()); }).join();
}

TEST(ContextLock, IsFreeAfterwards) {
  ContextLock lock;
  for (int i = 0; i < 3; ++i) {
    const ContextLock::Guard holds = lock.try_enter();
    EXPECT_TRUE(holds.owns_lock());
  }
  std::thread([&] { EXPECT_TRUE(lock.try_enter().owns_lock()); }).join();
  EXPECT_TRUE(lock.try_enter().owns_lock());
}

TEST(ContextLock, ExcludesOtherThreads) {
  constexpr int kThreads = 4, kTurns = 20'000;
  ContextLock lock;
  int turns = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([&] {
      for (int turn = 0; turn < kTurns; ++turn) {
        const ContextLock::Guard holds = lock.enter();
        ++turns;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(turns, kThreads * kTurns);
  EXPECT_FALSE(lock.wanted());
}

TEST(ContextLock, LetsInWhoWantsIt) {
  ContextLock lock;
  ContextLock::Guard holds = lock.enter();
  bool was_in = false;
  std::thread other([&] {
    const ContextLock::Guard inside = lock.enter();
    was_in = true;
  });
  while (!lock.wanted()) std::this_thread::yield();
  EXPECT_FALSE(was_in);
  while (!was_in) lock.let_others_in(holds);
  EXPECT_TRUE(holds.owns_lock());
  other.join();
}

TEST(ContextLock, IsClosedOnceItsHolderLetsOthersIn) {
  ContextLock lock;
  std::atomic<bool> holds{false}, closed{false};
  std::thread holder([&] {
    ContextLock::Guard guard = lock.enter();
    holds = true;
    while (!lock.wanted()) std::this_thread::yield();
    EXPECT_FALSE(closed);
  });
  while (!holds) std::this_thread::yield();
  closed = lock.close();
  EXPECT_TRUE(closed);
  EXPECT_FALSE(lock.wanted());
  EXPECT_FALSE(lock.try_enter().owns_lock());
  holder.join();
  EXPECT_FALSE(lock.try_enter().owns_lock());
}

TEST(ContextLock, IsNotFreeAfterItWasClosedWithoutAHolder) {
  ContextLock lock;
  std::thread([&] {
    EXPECT_TRUE(lock.close());
    EXPECT_FALSE(lock.try_enter().owns_lock());
  }).join();
}

TEST(ContextLock, IsNotClosedWhileItIsHeld) {
  ContextLock lock;
  std::atomic<bool> holds{false}, ends{false};
  std::thread holder([&] {
    const ContextLock::Guard guard = lock.enter();
    holds = true;
    while (!ends) std::this_thread::yield();
  });
  while (!holds) std::this_thread::yield();
  EXPECT_FALSE(lock.close());
  EXPECT_FALSE(lock.wanted());
  ends = true;
  holder.join();
  EXPECT_TRUE(lock.try_enter().owns_lock());
}

// In a process of its own, which has one thread when it takes the lock.
void get_a_second_thread() {
  ContextLock lock;
  int turns = 0;
  ContextLock::Guard holds = lock.enter();
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)  // which have threads of their own
  if (!__libc_single_threaded) std::_Exit(2);
#endif
  std::thread second([&] {
    const ContextLock::Guard inside = lock.enter();
    ++turns;
  });
  while (!lock.wanted()) std::this_thread::yield();
  if (turns != 0) std::_Exit(3);
  holds.unlock();
  second.join();
  std::_Exit(turns == 1 && lock.try_enter().owns_lock() ? 0 : 4);
}

TEST(ContextLockDeathTest, IsHeldAgainstAThreadThatBeginsMeanwhile) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(get_a_second_thread(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace ibcoll
