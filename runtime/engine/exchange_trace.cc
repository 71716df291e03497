// SPDX-License-Identifier: BSD-3-Clause
// When the peers of a collective that is traced were served.
#include "runtime/engine/engine.h"
#include "runtime/engine/exchange.h"
#include "runtime/engine/team.h"
#include "runtime/engine/trace.h"

namespace ibcoll {

void Exchange::note_begun(Channel& c) noexcept {
  if (c.begun_at == 0) c.begun_at = team_.engine().now();
}

// Of a put whose source is not reusable yet, this comes twice, and the second time counts.
void Exchange::note_sent(Channel& c) noexcept {
  c.sent_at = team_.engine().now();
  if (c.begun_at == 0) c.begun_at = c.sent_at;
}

void Exchange::note_landed(Channel& c) noexcept { c.landed_at = team_.engine().now(); }

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
