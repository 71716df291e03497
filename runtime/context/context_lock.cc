// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/context/context_lock.h"

#include <sched.h>

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

}  // namespace ibcoll
