// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/engine/scheduler.h"

#include <utility>

#include "runtime/engine/request.h"
#include "runtime/engine/team.h"

namespace ibcoll {

Scheduler::Scheduler(uint32_t calls_at_once) {
  memory_waits_.reserve(calls_at_once);
  arrival_waits_.reserve(calls_at_once);
  blocked_.reserve(calls_at_once);
  idle_copies_.reserve(calls_at_once);
}

void Scheduler::run(Request& request) noexcept {
  Exchange& exchange = request.exchange();
  const bool ended = exchange.resume();
  if (exchange.failed()) return;  // the engine ends it
  if (ended) {
    if (exchange.matched()) request.team().finish(request);
  } else if (is_polled(exchange.wait().kind) && !request.waits_for_memory) {
    wait_in(memory_waits_, request.waits_for_memory, request);
  } else if (exchange.awaits_arrival() && !request.waits_for_arrival) {
    if (arrival_waits_.empty()) idle_passes_ = 0, idle_since_ = request.team().engine().now();
    wait_in(arrival_waits_, request.waits_for_arrival, request);
  }
}

void Scheduler::run_if_ready(Exchange& exchange) noexcept {
  if (!exchange.failed() && exchange.runnable()) run(exchange.team().calls().at(exchange.op()));
}

void Scheduler::wait_in(std::vector<Request*>& waits, bool& listed, Request& request) noexcept {
  listed = list(waits, request);
  if (listed) return;
  request.team().health().fail(
      error(IBCOLL_ERR_NO_MEMORY, "rank {}: no memory to wait in {}", request.team().rank(), request.call()));
}

void Scheduler::forget(Request& request) noexcept {
  request.waits_for_memory = false;
  std::erase(memory_waits_, &request);
  if (std::exchange(request.waits_for_arrival, false)) std::erase(arrival_waits_, &request);
}

// ---------------------------------------------------------------- shared memory

bool Scheduler::look_at_memory() noexcept {
  bool moved = false;
  for (size_t i = 0; i < memory_waits_.size();) {
    Request* const request = memory_waits_[i];
    if (request->exchange().failed() || !request->exchange().runnable()) {
      ++i;
      continue;
    }
    memory_waits_[i] = memory_waits_.back();
    memory_waits_.pop_back();
    request->waits_for_memory = false;
    run(*request);
    ++events_;
    moved = true;
  }
  return moved;
}

int Scheduler::awaited_bell(size_t in_flight) const noexcept {
  if (!blocked_.empty() || in_flight != memory_waits_.size()) return Exchange::kNoBell;
  int awaited = Exchange::kNoBell;
  for (Request* const request : memory_waits_) {
    const int bell = request->exchange().awaited_bell();
    if (bell == Exchange::kEarlierCollective || bell == awaited) continue;
    if (bell < 0 || awaited >= 0) return Exchange::kNoBell;
    awaited = bell;
  }
  return awaited;
}

bool Scheduler::awaits_leaders() const noexcept {
  bool any = false;
  for (Request* const request : memory_waits_) {
    const bool part = awaits_part(request->exchange().wait());
    if (!part && request->exchange().awaited_bell() != Exchange::kEarlierCollective) return false;
    any |= part;
  }
  return any;
}

// ---------------------------------------------------------------- messages that found no room

// A task may wait until only so many of its messages have not left: some of them may be enough.
bool Scheduler::retry_all() noexcept {
  bool moved = false;
  for (size_t i = 0; i < blocked_.size();) {
    Channel* const channel = blocked_[i];
    Exchange& exchange = *channel->exchange;
    const uint32_t sent = channel->out.sent;
    if (!exchange.failed() && !exchange.outgoing().pump(*channel)) {
      if (sent != channel->out.sent) {
        moved = true;
        run_if_ready(exchange);
      }
      if (i < blocked_.size() && blocked_[i] == channel) ++i;  // else the call has ended, or another was listed here
      continue;
    }
    moved = true;
    channel->out.blocked = false;
    blocked_[i] = blocked_.back();
    blocked_.pop_back();
    run_if_ready(exchange);
  }
  return moved;
}

void Scheduler::forget(Channel& channel) noexcept {
  channel.out.blocked = false;
  std::erase(blocked_, &channel);
}

// ---------------------------------------------------------------- late peers

bool Scheduler::serve_late_peers(bool moved, Time now) noexcept {
  if (moved) {
    idle_passes_ = 0;
    return false;
  }
  if (idle_passes_++ == 0) idle_since_ = now;
  if (now < idle_since_ + kSpillAfter) return false;
  for (size_t i = 0; i < arrival_waits_.size();) {
    Request& request = *arrival_waits_[i];
    if (!request.exchange().failed() && request.exchange().awaits_arrival()) {
      if (request.exchange().incoming().serve_late()) {
        run(request);
        return true;  // the list may have changed
      }
      ++i;
      continue;
    }
    request.waits_for_arrival = false;
    arrival_waits_[i] = arrival_waits_.back();
    arrival_waits_.pop_back();
  }
  return false;
}

// ---------------------------------------------------------------- copies

bool Scheduler::copies_when_idle(IdleCopy& copy, const Exchange& of) noexcept {
  if (idle_copies_.size() == idle_copies_.capacity()) return false;
  idle_copies_.push_back({&copy, &of});
  return true;
}

void Scheduler::erase(IdleCopy& copy) noexcept {
  std::erase_if(idle_copies_, [&](const ListedCopy& listed) { return listed.copy == &copy; });
}

bool Scheduler::copy_now() noexcept {
  const ListedCopy& last = idle_copies_.back();
  if (last.of->failed()) return false;
  last.copy->copy();
  if (last.copy->done()) idle_copies_.pop_back();
  ++events_;
  return true;
}

}  // namespace ibcoll
