// SPDX-License-Identifier: BSD-3-Clause
// When the peers of a collective that is traced were served, and what passed through the node window.
#include <utility>

#include "runtime/engine/engine.h"
#include "runtime/engine/exchange.h"
#include "runtime/engine/team.h"
#include "runtime/engine/trace.h"

namespace ibcoll {
namespace {

// Of a wait in the node window: it is for the place of the next step.
bool awaits_place(const Wait& wait) {
  return wait.kind != &waits::kPublished && wait.kind != &waits::kAllPublished && wait.kind != &waits::kPartOrLanding;
}

}  // namespace

void Exchange::note_begun(Channel& c) noexcept {
  if (c.begun_at == 0) c.begun_at = team_.engine().now();
}

// Of a put whose source is not reusable yet, this comes twice, and the second time counts.
void Exchange::note_sent(Channel& c) noexcept {
  c.sent_at = team_.engine().now();
  if (c.begun_at == 0) c.begun_at = c.sent_at;
}

void Exchange::note_landed(Channel& c) noexcept { c.landed_at = team_.engine().now(); }

void Exchange::trace(bool peers) noexcept {
  traced_ = peers;
  if (peers && window_) window_->trace();
}

void Exchange::note_published() noexcept {
  NodeTimes& t = node_times_;
  if (t.published_at != 0) return;
  t.published_at = team_.engine().now();
  if (std::exchange(t.step, window_->step()) != window_->step()) t.step_from = t.published_at;
}

// Waits for an earlier collective of this rank, or for memory, are for no rank of the node.
void Exchange::note_suspended() noexcept {
  if (!has_turn() || !window_->has_lines()) return;
  NodeTimes& t = node_times_;
  if (std::exchange(t.step, window_->step()) != window_->step() || awaits_place(wait_))
    t.step_from = team_.engine().now();
  t.suspended_at = t.step_from;
}

// One look at the clock for each wait: those of all but the last one come while others are still awaited.
void Exchange::note_resumed() noexcept {
  NodeTimes& t = node_times_;
  t.suspended_at = 0;
  const int local = published_last();
  if (local < 0) return;
  t.step = window_->step();  // which has begun where its place was awaited
  const Time now = team_.engine().now();
  if (now - t.step_from < t.waited_until - t.waited_from) return;
  t.waited_from = t.step_from, t.waited_until = now, t.waited_for = local;
}

// The local rank that has ended the wait; -1: a message has.
int Exchange::published_last() noexcept {
  if (wait_.kind == &waits::kPartOrLanding)
    return has_landing() ? -1 : peer_with_part(reinterpret_cast<const uint32_t*>(wait_.value));
  return awaits_place(wait_) ? window_->behind() : behind_;
}

void Exchange::add_node_to(TracedCall& call) const noexcept {
  const NodeTimes& t = node_times_;
  const auto after_arrival = [&call](Time at) { return static_cast<int64_t>(at) - call.arrival_ns; };
  if (t.published_at != 0) call.published_ns = after_arrival(t.published_at);
  if (t.waited_until == 0) return;
  call.waited_from_ns = after_arrival(t.waited_from), call.waited_until_ns = after_arrival(t.waited_until);
  call.waited_for = window_->job_rank(t.waited_for);
}

void Exchange::add_peers_to(TraceRing& ring, int64_t arrival_ns) const noexcept {
  const auto after_arrival = [arrival_ns](Time at) {
    return at == 0 ? TracedPeer::kNever : static_cast<int64_t>(at) - arrival_ns;
  };
  for (const Channel* c = channels_.first(); c; c = c->next_peer)
    if (c->begun_at != 0 || c->landed_at != 0)
      ring.add_peer({after_arrival(c->begun_at), after_arrival(c->sent_at), after_arrival(c->landed_at),
                     team_.job_rank(c->peer), 0});
}

}  // namespace ibcoll
