// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/machine/network_end.h"

#include <mutex>

#include "runtime/machine/fork_watch.h"

namespace ibcoll {
namespace {

// Neither has a destructor that would run before the end comes.
std::mutex callers_lock;
NetworkEnd::Caller* first_caller = nullptr;

}  // namespace

std::atomic<bool> NetworkEnd::come_{false};

NetworkEnd::Caller::Caller(void (*keep_out)(void* of), void* of) noexcept : keep_out_(keep_out), of_(of) {
  const std::lock_guard guard(callers_lock);
  next_ = first_caller;
  first_caller = this;
}

NetworkEnd::Caller::~Caller() {
  const std::lock_guard guard(callers_lock);
  Caller** at = &first_caller;
  while (*at != this) at = &(*at)->next_;
  *at = next_;
}

// In a forked child no call gets as far as UCX, and locks may be held by threads that it does not have.
void NetworkEnd::come() noexcept {
  come_.store(true, std::memory_order_relaxed);
  if (ForkWatch::in_child()) return;
  const std::lock_guard guard(callers_lock);
  for (const Caller* caller = first_caller; caller; caller = caller->next_) caller->keep_out_(caller->of_);
}

}  // namespace ibcoll
