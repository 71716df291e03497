// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstring>

#include "runtime/verbs/sender.h"

namespace ibcoll::verbs {
namespace {

uint32_t padded(size_t bytes) { return static_cast<uint32_t>((bytes + 7) & ~size_t{7}); }

}  // namespace

[[gnu::always_inline]] inline Slot& Sender::put_in_slot(Peer& peer, SlotKind kind, const Note& note,
                                                        std::span<const std::byte> payload) {
  const uint64_t sequence = peer.sending.accept(kind).sequence;
  Slot& slot = peer.sending.staged(sequence);
  const uint32_t room = padded(payload.size());
  if (!payload.empty()) std::memcpy(slot.payload + kSlotPayload - room, payload.data(), payload.size());
  slot.header = {note, peer.receiving.released(), static_cast<uint16_t>(payload.size()), kind, 0, 0, sequence};
  peer.receiving.notified();
  return slot;
}

[[gnu::always_inline]] inline bool Sender::link_slot(Peer& peer, uint64_t sequence, bool immediate, bool signaled) {
  Slot& slot = peer.sending.staged(sequence);
  const uint32_t bytes = padded(slot.header.bytes) + static_cast<uint32_t>(sizeof slot.header);
  const size_t offset = sizeof(Slot) - bytes;
  const ibv_sge sge{reinterpret_cast<uintptr_t>(&slot) + offset, bytes, peer.channel.staging_key()};
  ibv_send_wr* const request = requests_.link(peer, sge, Work::kSend, sequence, signaled);
  if (!request) return false;
  aim(*request, peer, offsetof(Landing, slots) + (sequence - 1) % kSlots * sizeof(Slot) + offset);
  if (!immediate) return true;
  request->opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  request->imm_data = static_cast<uint32_t>(sequence);
  return true;
}

Slot& Sender::stage(Peer& peer, SlotKind kind, const Note& note, std::span<const std::byte> payload) {
  return put_in_slot(peer, kind, note, payload);
}

// Most messages leave at once.
void Sender::send(Peer& peer, const Note& note, std::span<const std::byte> payload) {
  const bool first = peer.connection.ready() && !peer.sending.has_unposted() && peer.exposed.unbound().empty();
  const uint64_t sequence = put_in_slot(peer, SlotKind::kMessage, note, payload).header.sequence;
  ++counters_.messages_sent;
  counters_.bytes_sent += payload.size();
  if (first && link_slot(peer, sequence, peer.connection.remote.notify == Notify::kImmediate, false)) {
    peer.sending.posted_next();
    requests_.flush(peer);
  } else {
    pump(peer);
  }
}

void Sender::report_sent(Peer& peer, Outgoing& out) {
  if (out.bytes == out.to.bytes) peer.new_keys.forget(out.to);  // the last put to this region
  if (out.source) local_.adapter.registrations().release(out.source);
  out.source = nullptr;
  local_.outbox.sent(peer.rank, out.token);
  out.sent_pending = false;
  --puts_pending_;
}

void Sender::pump(Peer& peer) {
  if (!peer.connection.ready()) return;
  bool room = peer.exposed.unbound().empty() || exposures_.bind(peer);
  while (room && peer.sending.has_unposted()) {
    Outgoing& out = peer.sending.next_to_post();
    room = out.kind == SlotKind::kPut
               ? post_put(peer, out)
               : post_slot(peer, out.sequence, peer.connection.remote.notify == Notify::kImmediate,
                           out.kind == SlotKind::kLeaving);
    if (room) peer.sending.posted_next();
  }
  if (room) return_credit(peer);
  requests_.flush(peer);
  if (!room) pump_later(peer);
}

void Sender::pump_later(Peer& peer) {
  if (std::find(pumped_.begin(), pumped_.end(), &peer) == pumped_.end()) pumped_.push_back(&peer);
}

void Sender::retry_pumps() {
  if (pumped_.empty()) return;
  pumping_.swap(pumped_);
  for (Peer* peer : pumping_) pump(*peer);
  pumping_.clear();
}

bool Sender::post_slot(Peer& peer, uint64_t sequence, bool immediate, bool signaled) {
  return link_slot(peer, sequence, immediate, signaled);
}

// The peer would run out of slots without it. Messages return credit as well.
void Sender::return_credit(Peer& peer) {
  if (!peer.receiving.credit_is_due() || !peer.connection.ready()) return;
  peer.channel->returned_credit = peer.receiving.released();
  const ibv_sge sge{reinterpret_cast<uintptr_t>(&peer.channel->returned_credit), sizeof(uint64_t),
                    peer.channel.staging_key()};
  if (ibv_send_wr* const request = requests_.link(peer, sge, Work::kLocal, 0, false)) {
    aim(*request, peer, offsetof(Landing, consumed));
    peer.receiving.notified();
    ++counters_.credits_returned;
  } else {
    pump_later(peer);
  }
}

}  // namespace ibcoll::verbs
