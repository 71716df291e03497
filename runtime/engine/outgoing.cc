// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/engine/outgoing.h"

#include <algorithm>
#include <cstring>

namespace ibcoll {

Outgoing::Outgoing(ExchangeState& state, ExchangeTrace& trace) noexcept
    : state_(state), trace_(trace), links_(state.links()) {}

void Outgoing::put(int peer, ConstBytes piece, uint64_t total) noexcept {
  Channel* const c = state_.channel(peer);
  if (c && c->out.left) [[unlikely]] {
    c->out.left = false;
    return;
  }
  Message* const m = c ? state_.message() : nullptr;
  if (!m) return;
  m->data = const_cast<std::byte*>(piece.data());
  m->bytes = piece.size();
  m->total = total;
  c->out.puts.push(m);
  ++queued_;
  if (!pump_puts(*c)) state_.retry_later(*c);
}

void Outgoing::want(Channel& c, uint64_t address, uint64_t bytes) noexcept {
  Message* const m = state_.message();
  if (!m) return;
  m->data = reinterpret_cast<std::byte*>(address);
  m->bytes = bytes;
  c.out.wanted.push(m);
  if (!pump(c)) state_.retry_later(c);
}

void Outgoing::on_advertisement(Channel& c, const Note& note, ConstBytes payload) noexcept {
  // The message was spilled whole while its advertisement was on the way: that needs no answer.
  if (c.out.advertised++ + note.index < c.out.announced_sent) return;
  Message* const m = state_.message();
  if (!m || payload.size() != sizeof(RemoteRegion)) return;
  std::memcpy(&m->region, payload.data(), sizeof(RemoteRegion));
  m->bytes = note.bytes;
  c.out.advertisements.push(m);
}

void Outgoing::close() noexcept {
  for (Channel* c = state_.first(); c; c = c->next_peer)
    if (c->out.blocked) state_.team().engine().scheduler().forget(*c);
}

bool Outgoing::pump(Channel& c) noexcept {
  const bool reported = pump_consumed(c);
  const bool advertised = pump_advertisements(c);
  const bool asked = !c.out.wanted.head || pump_wanted(c);
  return pump_puts(c) && advertised && reported && asked;
}

bool Outgoing::pump_advertisements(Channel& c) noexcept {
  for (Message* m = c.in.unadvertised ? c.in.unadvertised : c.in.announced.head; m; m = m->next) {
    c.in.unadvertised = m;
    if (m->advertised) continue;
    const bool exposes = state_.scheme() == IBCOLL_SCHEME_AUTO ? m->bytes >= c.link.transport->least_worth_exposing()
                                                               : state_.scheme() == IBCOLL_SCHEME_ZERO_COPY;
    if (exposes && m->region.key == 0) m->region = links_.expose(c.peer, Bytes(m->data, m->bytes));
    const ConstBytes payload(reinterpret_cast<const std::byte*>(&m->region), sizeof(RemoteRegion));
    if (!links_.send(c.link, state_.note(NoteKind::kAnnounce, m->bytes, c.in.not_advertised), payload)) return false;
    m->advertised = true;
  }
  return true;
}

bool Outgoing::pump_consumed(Channel& c) noexcept {
  if (!c.credit.due(state_.team().engine().limits().eager_ahead)) return true;
  if (!links_.send(c.link, state_.note(NoteKind::kConsumed, c.credit.taken(), 0), {})) return false;
  c.credit.reported();
  return true;
}

bool Outgoing::pump_wanted(Channel& c) noexcept {
  MessageQueue& wanted = c.out.wanted;
  while (wanted.head) {
    const auto address = reinterpret_cast<uint64_t>(wanted.head->data);
    const Note note = state_.note(NoteKind::kWanted, wanted.head->bytes, 0);
    if (!links_.send(c.link, note, std::as_bytes(std::span(&address, 1)))) return false;
    state_.recycle(wanted.pop());
  }
  return true;
}

bool Outgoing::pump_puts(Channel& c) noexcept {
  while (Message* const m = c.out.puts.head) {
    const Sent sent = state_.eager(m->total) ? send_eager(c, *m) : send_announced(c, *m);
    if (sent == Sent::kWaits) return true;  // for the peer's advertisement or credit: its note will pump again
    if (sent == Sent::kBusy) return false;
    trace_.sent(c.times);
    c.out.puts.pop();
    ++c.out.sent;
    --queued_;
    state_.recycle(m);
  }
  return true;
}

bool Outgoing::may_run_ahead(Channel& c) noexcept {
  if (c.out.ahead) return true;
  TeamCredit::Peer* const credit = links_.credit_of(c.link);
  c.out.ahead = credit && links_.credit().may_send(*credit, state_.op());
  return c.out.ahead;
}

Outgoing::Sent Outgoing::send_eager(Channel& c, Message& put) noexcept {
  if (!c.credit.may_send(state_.team().engine().limits().eager_ahead)) return Sent::kWaits;
  if (!may_run_ahead(c)) {
    links_.ask_for_credit(c.peer);
    return Sent::kBusy;
  }
  if (!links_.send(c.link, state_.note(NoteKind::kEager, put.total, c.out.sent), ConstBytes(put.data, put.bytes)))
    return Sent::kBusy;
  TeamCredit::sent(*c.link.credit, state_.op(), put.bytes);
  c.credit.sent();
  return Sent::kYes;
}

Outgoing::Sent Outgoing::send_announced(Channel& c, Message& put) noexcept {
  Message* const to = c.out.advertisements.head;
  if (!to) return c.out.spills ? spill(c, put) : Sent::kWaits;
  if (to->bytes != put.total) {
    state_.mismatch(c.peer, to->bytes, put.total, "bytes of a message to it");
    return Sent::kWaits;
  }
  if (to->moved == 0) to->moved = put.spilled;  // which has arrived already, or is on its way
  const ConstBytes left(put.data + put.spilled, put.bytes - put.spilled);
  if (to->region.key != 0)
    if (const Sent written = write(c, *to, left); written != Sent::kYes) return written;
  if (to->region.key == 0 && !send_fragments(c, NoteKind::kFragment, put, put.bytes)) return Sent::kBusy;
  to->moved += left.size();
  if (to->moved < to->bytes) return Sent::kYes;
  state_.recycle(c.out.advertisements.pop());
  ++c.out.announced_sent;
  return Sent::kYes;
}

// Where the kernel refuses that, the region has no key any more.
Outgoing::Sent Outgoing::write(Channel& c, Message& to, ConstBytes left) noexcept {
  const RemoteRegion rest{to.region.address + to.moved, to.bytes - to.moved, to.region.key};
  const Note landed = state_.note(NoteKind::kLanded, left.size(), c.out.sent);
  const PutResult result = links_.put(c.link, rest, left, landed, reinterpret_cast<uint64_t>(&c));
  if (result == PutResult::kBusy) return Sent::kBusy;
  if (result == PutResult::kPending) ++pending_;
  if (result == PutResult::kRefused) {
    if (!state_.may_access(left, Access::kRead)) return Sent::kWaits;
    to.region.key = 0;
  }
  return Sent::kYes;
}

// Sends the fragments of a put, up to byte `end`.
bool Outgoing::send_fragments(Channel& c, NoteKind kind, Message& put, uint64_t end) noexcept {
  const uint64_t slot = c.link.transport->slot_bytes();
  while (put.moved < end) {
    const ConstBytes fragment = part(ConstBytes(put.data, end), put.moved, slot);
    if (!links_.send(c.link, state_.note(kind, put.total, c.out.sent), fragment)) return false;
    put.moved += fragment.size();
    trace_.begun(c.times);
  }
  return true;
}

// The peer's engine keeps the fragments until it announces; how much it keeps of all ranks is bounded by their shares,
// over all collectives. What the share has no room for waits for the advertisement.
Outgoing::Sent Outgoing::spill(Channel& c, Message& put) noexcept {
  if (put.bytes != put.total || !may_run_ahead(c)) return Sent::kWaits;
  const uint64_t from = put.moved;
  const uint64_t share = links_.credit().spill_share(), used = std::min(share, c.link.credit->ahead.spilled());
  const uint64_t end = from + std::min(share - used, put.bytes - from);
  const bool all = send_fragments(c, NoteKind::kSpill, put, end);
  TeamCredit::spilled(*c.link.credit, state_.op(), put.moved - from);
  put.spilled = put.moved;
  if (put.moved < put.bytes) return all ? Sent::kWaits : Sent::kBusy;
  ++c.out.announced_sent;
  return Sent::kYes;
}

}  // namespace ibcoll
