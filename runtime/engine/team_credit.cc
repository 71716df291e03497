// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/engine/team_credit.h"

namespace ibcoll {

bool TeamCredit::may_send(int peer, uint32_t op) noexcept {
  Peer* const p = peers_.at(peer);
  return p && p->ahead.begin(op, {limits_.collectives_ahead, limits_.bytes_ahead});
}

bool TeamCredit::ended(int peer, uint32_t op, uint64_t eager_bytes, uint64_t spilled_bytes) noexcept {
  Peer* const p = peers_.at(peer);
  if (!p) return false;
  // The numbers start again after 2^32 - 1, so an old one may look as if it were still to come.
  if (p->pending == 0 || static_cast<int32_t>(op - p->pending_through) > 0) p->pending_through = op;
  ++p->pending;
  p->pending_bytes += eager_bytes;
  p->pending_spilled += spilled_bytes;
  return due(*p);
}

bool TeamCredit::wanted(int peer) noexcept {
  Peer* const p = peers_.at(peer);
  if (!p) return false;
  p->wanted = true;
  return due(*p);
}

void TeamCredit::note_left(int peer, uint32_t completed) noexcept {
  Peer* const p = peers_.find(peer);
  if (!p) return;
  p->reported = completed;
  if (static_cast<int32_t>(completed - p->pending_through) >= 0)
    p->pending = 0, p->pending_bytes = 0, p->pending_spilled = 0, p->wanted = false;
}

}  // namespace ibcoll
