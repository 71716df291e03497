// SPDX-License-Identifier: BSD-3-Clause
// How a collective's messages leave: eager, by put, or in fragments; as far as credit allows.
#include "runtime/engine/exchange.h"

#include <algorithm>

#include "runtime/engine/engine.h"
#include "runtime/engine/team.h"

namespace ibcoll {

bool Exchange::pump(Channel& c) noexcept {
  const bool reported = pump_consumed(c);
  const bool advertised = pump_advertisements(c);
  const bool asked = !c.wanted.head || pump_wanted(c);
  return pump_puts(c) && advertised && reported && asked;
}

bool Exchange::pump_advertisements(Channel& c) noexcept {
  for (Message* m = c.unadvertised ? c.unadvertised : c.announced.head; m; m = m->next) {
    c.unadvertised = m;
    if (m->advertised) continue;
    Transport& transport = team_.transport(c.peer);
    const bool exposes = scheme_ == IBCOLL_SCHEME_AUTO ? m->bytes >= transport.least_worth_exposing()
                                                       : scheme_ == IBCOLL_SCHEME_ZERO_COPY;
    if (exposes && m->region.key == 0) m->region = team_.expose(c.peer, Bytes(m->data, m->bytes));
    const ConstBytes payload(reinterpret_cast<const std::byte*>(&m->region), sizeof(RemoteRegion));
    if (!team_.send(c.peer, note(NoteKind::kAnnounce, m->bytes, 0), payload)) return false;
    m->advertised = true;
  }
  return true;
}

bool Exchange::pump_puts(Channel& c) noexcept {
  while (Message* const m = c.puts.head) {
    const Sent sent = eager(m->total) ? send_eager(c, *m) : send_announced(c, *m);
    if (sent == Sent::kWaits) return true;  // for the peer's advertisement or credit: its note will pump again
    if (sent == Sent::kBusy) return false;
    trace_.sent(c.times);
    c.puts.pop();
    ++c.sent;
    --puts_queued_;
    recycle(m);
  }
  return true;
}

bool Exchange::may_run_ahead(Channel& c) noexcept {
  c.ahead = c.ahead || team_.credit().may_send(c.peer, op_);
  return c.ahead;
}

Exchange::Sent Exchange::send_eager(Channel& c, Message& put) noexcept {
  if (!c.credit.may_send(team_.engine().limits().eager_ahead)) return Sent::kWaits;
  if (!may_run_ahead(c)) {
    team_.ask_for_credit(c.peer);
    return Sent::kBusy;
  }
  if (!team_.send(c.peer, note(NoteKind::kEager, put.total, c.sent), ConstBytes(put.data, put.bytes)))
    return Sent::kBusy;
  team_.credit().sent(c.peer, put.bytes);
  c.credit.sent();
  return Sent::kYes;
}

Exchange::Sent Exchange::send_announced(Channel& c, Message& put) noexcept {
  Message* const to = c.advertisements.head;
  if (!to) return c.spills ? spill(c, put) : Sent::kWaits;
  if (to->bytes != put.total) {
    mismatch(c.peer, to->bytes, put.total, "bytes of a message to it");
    return Sent::kWaits;
  }
  if (to->moved == 0) to->moved = put.spilled;  // which has arrived already, or is on its way
  const ConstBytes left(put.data + put.spilled, put.bytes - put.spilled);
  if (to->region.key != 0) {
    const RemoteRegion rest{to->region.address + to->moved, to->bytes - to->moved, to->region.key};
    const PutResult result =
        team_.put(c.peer, rest, left, note(NoteKind::kLanded, left.size(), c.sent), reinterpret_cast<uint64_t>(&c));
    if (result == PutResult::kBusy) return Sent::kBusy;
    if (result == PutResult::kPending) ++puts_pending_;
    if (result == PutResult::kRefused) {
      if (!may_access(left, Access::kRead)) return Sent::kWaits;
      to->region.key = 0;
    }
  }
  if (to->region.key == 0) {
    const uint64_t slot = team_.transport(c.peer).slot_bytes();
    while (put.moved < put.bytes) {
      const ConstBytes fragment = part(ConstBytes(put.data, put.bytes), put.moved, slot);
      if (!team_.send(c.peer, note(NoteKind::kFragment, put.total, c.sent), fragment)) return Sent::kBusy;
      put.moved += fragment.size();
      trace_.begun(c.times);
    }
  }
  to->moved += left.size();
  if (to->moved == to->bytes) recycle(c.advertisements.pop());
  return Sent::kYes;
}

// The peer's engine keeps the fragments until it announces; how much it keeps of all ranks is bounded by their shares.
// The last byte waits for the advertisement, so that every message ends in the same way.
Exchange::Sent Exchange::spill(Channel& c, Message& put) noexcept {
  if (put.bytes != put.total || !may_run_ahead(c)) return Sent::kWaits;
  const uint64_t slot = team_.transport(c.peer).slot_bytes();
  const uint64_t most = put.moved + std::min(spill_share_ - c.spilled, put.bytes - 1 - put.moved);
  while (put.moved < most) {
    const ConstBytes fragment = part(ConstBytes(put.data, most), put.moved, slot);
    if (!team_.send(c.peer, note(NoteKind::kSpill, put.total, c.sent), fragment)) return Sent::kBusy;
    put.moved += fragment.size();
    c.spilled += fragment.size();
    put.spilled = put.moved;
    trace_.begun(c.times);
  }
  return Sent::kWaits;
}

bool Exchange::pump_consumed(Channel& c) noexcept {
  if (!c.credit.due(team_.engine().limits().eager_ahead)) return true;
  if (!team_.send(c.peer, note(NoteKind::kConsumed, c.credit.taken(), 0), {})) return false;
  c.credit.reported();
  return true;
}

}  // namespace ibcoll
