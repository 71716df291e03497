// SPDX-License-Identifier: BSD-3-Clause
// The lock of a context, which every call holds. A thread that waits for a collective releases it as soon as another
// thread wants it. While the process has one thread the lock is a plain variable: an atomic read-modify-write, twice,
// would be a tenth of a short call.
#pragma once

#include <sys/single_threaded.h>

#include <atomic>

namespace ibcoll {

class ContextLock {
 public:
  class Guard;

  Guard enter() noexcept;
  // Without waiting: it may not have the lock.
  Guard try_enter() noexcept;
  // Another thread waits for the lock.
  bool wanted() const noexcept { return wanting_.load(std::memory_order_relaxed) > 0; }
  // The guard holds the lock, and holds it again when those threads have had it.
  void let_others_in(Guard& guard) noexcept;
  // For the end of the process: waits until no thread has the lock, and lets none have it again. Threads that want it
  // stay where they are until the process is gone. False: a thread has not released it within kClosingSeconds.
  bool close() noexcept;
  static constexpr double kClosingSeconds = 1;

  // ---- as of std::mutex

  void lock() noexcept {
    if (!try_lock()) [[unlikely]]
      wait();
  }
  // A second thread can only begin after this one has held the lock or released it, and sees which.
  bool try_lock() noexcept {
    if (__libc_single_threaded) {
      if (state_.load(std::memory_order_relaxed) != State::kFree) return false;
      state_.store(State::kHeld, std::memory_order_relaxed);
      return true;
    }
    State free = State::kFree;
    return state_.compare_exchange_strong(free, State::kHeld, std::memory_order_acquire, std::memory_order_relaxed);
  }
  void unlock() noexcept {
    if (__libc_single_threaded)
      state_.store(State::kFree, std::memory_order_release);
    else if (state_.exchange(State::kFree, std::memory_order_release) == State::kAwaited)
      state_.notify_one();
  }

 private:
  enum class State : int { kFree, kHeld, kAwaited };  // kAwaited: held, and a thread may sleep until it is free

  [[gnu::noinline]] void wait() noexcept;

  std::atomic<State> state_{State::kFree};
  std::atomic<int> wanting_{0};  // threads
};

// As std::unique_lock, which can fail where this cannot: GCC does not inline that into a short call.
class ContextLock::Guard {
 public:
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;
  ~Guard() {
    if (owns_) lock_.unlock();
  }
  void lock() noexcept {
    lock_.lock();
    owns_ = true;
  }
  void unlock() noexcept {
    owns_ = false;
    lock_.unlock();
  }
  bool owns_lock() const noexcept { return owns_; }

 private:
  friend ContextLock;
  Guard(ContextLock& lock, bool owns) noexcept : lock_(lock), owns_(owns) {}

  ContextLock& lock_;
  bool owns_;
};

inline ContextLock::Guard ContextLock::enter() noexcept {
  lock();
  return {*this, true};
}

inline ContextLock::Guard ContextLock::try_enter() noexcept { return {*this, try_lock()}; }

}  // namespace ibcoll
