// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/context/context_lock.h"

#include <sched.h>

#include "runtime/machine/deadline.h"

namespace ibcoll {

// Others may sleep as well: the lock stays marked as awaited until a thread that was not woken takes it.
void ContextLock::wait() noexcept {
  wanting_.fetch_add(1, std::memory_order_relaxed);
  while (state_.exchange(State::kAwaited, std::memory_order_acquire) != State::kFree) state_.wait(State::kAwaited);
  wanting_.fetch_sub(1, std::memory_order_relaxed);
}

// The first thread that asks gets the lock: this one again, before another one has woken up. So it waits until the
// others have taken it.
void ContextLock::let_others_in(Guard& guard) noexcept {
  constexpr int kHandOverYields = 1000;  // where nobody else wants the core, a third of a millisecond
  guard.unlock();
  for (int i = 0; i < kHandOverYields && wanted(); ++i) ::sched_yield();
  guard.lock();
}

// With one thread, the lock can only be held by a call that this thread itself has not returned from.
bool ContextLock::close() noexcept {
  if (__libc_single_threaded) return try_lock();
  const Deadline deadline = Deadline::after_seconds(kClosingSeconds);
  wanting_.fetch_add(1, std::memory_order_relaxed);
  bool closed = try_lock();
  while (!closed && !deadline.passed()) {
    ::sched_yield();
    closed = try_lock();
  }
  wanting_.fetch_sub(1, std::memory_order_relaxed);
  return closed;
}

}  // namespace ibcoll
