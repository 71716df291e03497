// SPDX-License-Identifier: BSD-3-Clause
// How a thread waits for a collective: it looks, rests, lets other threads in and the host progress.
#pragma once

#include <memory>

#include "runtime/context/context_lock.h"
#include "runtime/context/host.h"
#include "runtime/context/progress.h"
#include "runtime/machine/doorbell.h"
#include "runtime/machine/wait_strategy.h"

namespace ibcoll {

class Waiting {
 public:
  // All outlive it.
  Waiting(ContextLock& lock, Progress& progress, const HostProgram& host) noexcept
      : lock_(lock), progress_(progress), host_(host) {}
  // `doorbell`: nullptr where each rank has a core, or this one is alone on its node.
  void open(std::unique_ptr<WaitStrategy> strategy, std::unique_ptr<Doorbell> doorbell) noexcept;

  const WaitStrategy& strategy() const noexcept { return *strategy_; }
  Doorbell* doorbell() const noexcept { return doorbell_.get(); }
  // How often a short call looks at memory before it waits as other calls do. Not at all where ranks share a core, which
  // others need, or where another thread waits for the lock.
  uint32_t looks_of_a_short_call() const noexcept { return strategy_->spins() > 1 && !lock_.wanted() ? 400 : 0; }
  // A call returns that has not waited: threads that want the lock get it first.
  void give_way(ContextLock::Guard& guard) noexcept {
    if (lock_.wanted()) [[unlikely]]
      lock_.let_others_in(guard);
  }

  // Blocks until the request is complete and nothing is queued, or until `seconds` have passed (TIMEOUT; the request
  // stays in flight). `guard` holds the lock, and holds it again on return.
  Status wait(Request& request, double seconds, ContextLock::Guard& guard) {
    if (request.in_flight() || progress_.needs_polling()) return wait_in_loop(request, seconds, guard);
    progress_.drain_later();
    return request.status();
  }

 private:
  Status wait_in_loop(Request& request, double seconds, ContextLock::Guard& guard);
  class Waiter;  // for WaitLoop

  ContextLock& lock_;
  Progress& progress_;
  const HostProgram& host_;
  std::unique_ptr<WaitStrategy> strategy_;
  std::unique_ptr<Doorbell> doorbell_;
};

}  // namespace ibcoll
