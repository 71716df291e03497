// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/context/waiting.h"

#include <algorithm>
#include <utility>

#include "runtime/machine/wait_loop.h"

namespace ibcoll {

void Waiting::open(std::unique_ptr<WaitStrategy> strategy, std::unique_ptr<Doorbell> doorbell) noexcept {
  strategy_ = std::move(strategy);
  doorbell_ = std::move(doorbell);
}

// A request that a thread waits for. Done: it is complete, and no message is queued.
class Waiting::Waiter {
 public:
  Waiter(Waiting& waiting, Request& request, ContextLock::Guard& guard) noexcept
      : waiting_(waiting),
        progress_(waiting.progress_),
        request_(request),
        guard_(guard),
        looks_at_memory_(waiting.strategy_->spins() > 1 ? kLooksAtMemory : 0) {
    progress_.count_waiting(1);
  }
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;
  ~Waiter() { progress_.count_waiting(-1); }

  // A rank with a core of its own polls shared memory several times for each pass over the messages: what it waits for
  // there arrives in less time than such a pass takes.
  bool look() noexcept {
    Engine& engine = progress_.engine();
    Scheduler& scheduler = engine.scheduler();
    bool moved = false;
    for (uint32_t i = 0; i < looks_at_memory_ && !moved && scheduler.waits_for_memory(); ++i)
      moved = scheduler.look_at_memory();
    if (moved && done() && progress_.goes_without_messages()) return true;
    return engine.progress(kLooksAtTransport) || moved;
  }
  bool done() const noexcept { return !request_.in_flight() && !progress_.needs_polling(); }
  bool gave_way() noexcept {
    if (!waiting_.lock_.wanted()) return false;
    waiting_.lock_.let_others_in(guard_);
    return true;
  }
  bool gives_up() noexcept {
    overdue_ = request_.overdue();
    return !overdue_.ok();
  }
  Status overdue() noexcept { return std::move(overdue_); }
  template <typename F>
  bool unlocked(F f) noexcept {
    guard_.unlock();
    const bool result = f();
    guard_.lock();
    return result;
  }
  void rested(bool long_wait) noexcept {
    if (long_wait) progress_.check();
    progress_.after_a_pass();
  }
  bool has_host() const noexcept { return waiting_.host_.present(); }
  bool advance_host() noexcept {
    return unlocked([this] { return waiting_.host_.advance(); });
  }
  Doorbell* doorbell() noexcept { return waiting_.doorbell_.get(); }
  bool awaits_leaders() noexcept { return progress_.engine().scheduler().awaits_leaders(); }
  // A thread sleeps until it is woken only if no other thread waits: another one might complete what it waits for
  // without waking it. Nor do queued messages wake it as they leave.
  int awaited_bell() noexcept {
    const bool alone = progress_.waiting_threads() == 1;
    return alone && !progress_.needs_polling() ? progress_.engine().awaited_bell() : Doorbell::kNoBell;
  }

 private:
  static constexpr uint32_t kLooksAtMemory = 8;
  static constexpr uint32_t kLooksAtTransport = 4;  // where that is all there is to look at

  Waiting& waiting_;
  Progress& progress_;
  Request& request_;
  ContextLock::Guard& guard_;
  const uint32_t looks_at_memory_;  // for each pass over the messages
  Status overdue_;
};

Status Waiting::wait_in_loop(Request& request, double seconds, ContextLock::Guard& guard) {
  const struct AtReturn {
    Progress& progress;
    ~AtReturn() { progress.drain_later(); }
  } at_return{progress_};
  Waiter waiter(*this, request, guard);
  WaitLoop loop(*strategy_, Deadline::after_seconds(std::max(0.0, seconds)));
  const WaitLoop::End end = loop.run(waiter);
  if (end == WaitLoop::End::kGivenUp) return waiter.overdue();
  if (end == WaitLoop::End::kDone) return request.status();
  progress_.after_a_pass();  // a host program may wait for no time at all, many times
  if (!request.in_flight()) return request.status();
  return error(IBCOLL_ERR_TIMEOUT, "rank {}: {} is not complete after {} s: it {}", request.team().rank(),
               request.call(), seconds, request.exchange().describe_wait());
}

}  // namespace ibcoll
