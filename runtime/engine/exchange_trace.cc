// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/engine/exchange_trace.h"

#include <utility>

#include "runtime/engine/engine.h"
#include "runtime/engine/exchange_state.h"
#include "runtime/engine/trace.h"
#include "runtime/engine/waits.h"

namespace ibcoll {

void ExchangeTrace::enable(bool on) noexcept {
  enabled_ = on;
  if (on && window_) window_->trace();
}

void ExchangeTrace::note_begun(PeerTimes& times) noexcept {
  if (times.begun_at == 0) times.begun_at = engine_.now();
}

void ExchangeTrace::note_sent(PeerTimes& times) noexcept {
  times.sent_at = engine_.now();
  if (times.begun_at == 0) times.begun_at = times.sent_at;
}

void ExchangeTrace::note_landed(PeerTimes& times) noexcept { times.landed_at = engine_.now(); }

void ExchangeTrace::note_published() noexcept {
  NodeTimes& t = node_;
  if (t.published_at != 0) return;
  t.published_at = engine_.now();
  const uint64_t step = window_->steps().step();
  if (std::exchange(t.step, step) != step) t.step_from = t.published_at;
}

// A wait for the memory of the window is for no rank of the node.
void ExchangeTrace::suspended(const Wait& wait) noexcept {
  if (!window_->memory().has_lines()) return;
  NodeTimes& t = node_;
  const uint64_t step = window_->steps().step();
  if (std::exchange(t.step, step) != step || awaits_step(wait)) t.step_from = engine_.now();
  t.suspended_at = t.step_from;
}

// Reads the clock once for each wait: all but the last one end while other ranks are still awaited.
void ExchangeTrace::resumed(int local) noexcept {
  NodeTimes& t = node_;
  t.suspended_at = 0;
  if (local < 0) return;
  t.step = window_->steps().step();  // which has begun, where the wait was for that
  const Time now = engine_.now();
  if (now - t.step_from < t.waited_until - t.waited_from) return;
  t.waited_from = t.step_from, t.waited_until = now, t.waited_for = local;
}

void ExchangeTrace::add_node_to(TracedCall& call) const noexcept {
  const NodeTimes& t = node_;
  const auto after_arrival = [&call](Time at) { return static_cast<int64_t>(at) - call.arrival_ns; };
  if (t.published_at != 0) call.published_ns = after_arrival(t.published_at);
  if (t.waited_until == 0) return;
  call.waited_from_ns = after_arrival(t.waited_from), call.waited_until_ns = after_arrival(t.waited_until);
  call.waited_for = window_->job_rank(t.waited_for);
}

void ExchangeTrace::add_to(TraceBuffer& buffer, TracedCall call, const ExchangeState& state) const noexcept {
  add_node_to(call);
  buffer.add(call);
  const auto after_arrival = [&call](Time at) {
    return at == 0 ? TracedPeer::kNever : static_cast<int64_t>(at) - call.arrival_ns;
  };
  for (const Channel* c = state.first(); c; c = c->next_peer) {
    if (!c->times.any()) continue;
    TracedPeer peer;
    peer.begun_ns = after_arrival(c->times.begun_at);
    peer.sent_ns = after_arrival(c->times.sent_at);
    peer.landed_ns = after_arrival(c->times.landed_at);
    peer.job_rank = state.team().members().job_rank(c->peer);
    buffer.add_peer(peer);
  }
}

}  // namespace ibcoll
