// SPDX-License-Identifier: BSD-3-Clause
// The lock of a context, which every call holds. A thread that waits for a collective releases it as soon as another
// thread wants it.
#pragma once

#include <atomic>
#include <mutex>

namespace ibcoll {

class ContextLock {
 public:
  using Guard = std::unique_lock<std::mutex>;

  Guard enter() noexcept {
    Guard guard(mutex_, std::try_to_lock);
    if (!guard.owns_lock()) enter_again(guard);
    return guard;
  }
  // Without waiting: it may not have the lock.
  Guard try_enter() noexcept { return {mutex_, std::try_to_lock}; }
  // The guard has released the lock, and holds it again.
  void enter_again(Guard& guard) noexcept;
  // Another thread waits for the lock.
  bool wanted() const noexcept { return wanting_.load(std::memory_order_relaxed) > 0; }
  // The guard holds the lock, and holds it again when those threads have had it.
  void let_others_in(Guard& guard) noexcept;
  std::mutex& mutex() noexcept { return mutex_; }

 private:
  std::mutex mutex_;
  std::atomic<int> wanting_{0};  // threads
};

}  // namespace ibcoll
