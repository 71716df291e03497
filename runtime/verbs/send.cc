// SPDX-License-Identifier: BSD-3-Clause
// Messages on their way out, and work requests of all kinds.
#include <algorithm>
#include <cstring>

#include "runtime/base/log.h"
#include "runtime/verbs/transport.h"

namespace ibcoll::verbs {
namespace {

uint32_t padded(size_t bytes) { return static_cast<uint32_t>((bytes + 7) & ~size_t{7}); }

}  // namespace

bool Transport::acceptable(int rank, Peer*& found) {
  found = find_or_make(rank);
  if (found == nullptr) return false;
  Peer& peer = *found;
  if (peer.connection.is(State::kNew)) start(peer);
  if (peer.liveness.left()) {
    fail(peer, "it has left the job");
    report_failure(peer);
  }
  if (peer.liveness.lost()) return false;
  if (peer.sending.has_slot()) {  // what is accepted now leaves when the connection is there
    if (!peer.connection.ready()) unsent_.store(true, std::memory_order_relaxed);
    return true;
  }
  ++counters_.no_credit;
  return false;
}

Slot& Transport::stage(Peer& peer, SlotKind kind, const Note& note, std::span<const std::byte> payload) {
  const uint64_t sequence = peer.sending.accept(kind).sequence;
  Slot& slot = peer.sending.staged(sequence);
  const uint32_t room = padded(payload.size());
  if (!payload.empty()) std::memcpy(slot.payload + kSlotPayload - room, payload.data(), payload.size());
  slot.header = {note, peer.receiving.released(), static_cast<uint16_t>(payload.size()), kind, 0, 0, sequence};
  peer.receiving.told();
  return slot;
}

bool Transport::send(int rank, const Note& note, std::span<const std::byte> payload) {
  Peer* peer = nullptr;
  if (payload.size() > kSlotPayload || !acceptable(rank, peer)) return false;
  stage(*peer, SlotKind::kMessage, note, payload);
  ++counters_.messages_sent;
  counters_.bytes_sent += payload.size();
  pump(*peer);
  return true;
}

void Transport::give_sent(Peer& peer, Outgoing& out) {
  if (out.bytes == out.to.bytes) peer.new_keys.forget(out.to);  // after the last piece
  if (out.source) registrations_->release(out.source);
  out.source = nullptr;
  sent_.push_back({peer.rank, out.token});
  out.unsent = false;
}

// Posts what was accepted, in order, as far as the send queue has room.
void Transport::pump(Peer& peer) {
  if (!peer.connection.ready()) return;
  bool room = bind_windows(peer);
  while (room && peer.sending.has_unposted()) {
    Outgoing& out = peer.sending.next_to_post();
    room = out.kind == SlotKind::kPut
               ? post_put(peer, out)
               : post_slot(peer, out.sequence, peer.connection.remote.notify == Notify::kImmediate,
                           out.kind == SlotKind::kLeaving);
    if (room) peer.sending.posted_next();
  }
  if (room) tell_consumed(peer);
  ring(peer);
  if (!room) pump_later(peer);
}

void Transport::pump_later(Peer& peer) {
  if (std::find(pumped_.begin(), pumped_.end(), &peer) == pumped_.end()) pumped_.push_back(&peer);
}

void Transport::retry_pumps() {
  if (pumped_.empty()) return;
  pumping_.swap(pumped_);
  for (Peer* peer : pumping_) pump(*peer);
  pumping_.clear();
}

bool Transport::post_slot(Peer& peer, uint64_t sequence, bool immediate, bool signaled) {
  Slot& slot = peer.sending.staged(sequence);
  const uint32_t bytes = padded(slot.header.bytes) + static_cast<uint32_t>(sizeof slot.header);
  const size_t offset = sizeof(Slot) - bytes;
  ibv_send_wr request = write_to(peer, offsetof(Landing, slots) + (sequence - 1) % kSlots * sizeof(Slot) + offset);
  if (immediate) request.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  request.imm_data = static_cast<uint32_t>(sequence);
  const ibv_sge piece{reinterpret_cast<uintptr_t>(&slot) + offset, bytes, peer.channel.staging_key()};
  return link(peer, request, piece, Work::kSend, sequence, signaled);
}

ibv_send_wr Transport::write_to(const Peer& peer, uint64_t landing_offset) {
  ibv_send_wr request{};
  request.opcode = IBV_WR_RDMA_WRITE;
  request.wr.rdma.remote_addr = peer.connection.remote.landing_address + landing_offset;
  request.wr.rdma.rkey = peer.connection.remote.landing_key;
  return request;
}

// Writes nothing; its completion tells that the peer's device answers, or that what was posted before has completed.
ibv_send_wr Transport::empty_write(const Peer& peer) { return write_to(peer, 0); }

// Behind what is linked already; ring() follows before anything else is done with the queue pair. A piece of no bytes
// is none. False: the send queue is full.
bool Transport::link(Peer& peer, const ibv_send_wr& request, ibv_sge piece, Work work, uint64_t sequence,
                     bool signaled) {
  SendQueue& queue = peer.sending.queue;
  if (queue.room() <= (work == Work::kSend ? 1 : 0)) return false;  // the last place is for signs of life
  if (linked_count_ == linked_.size()) ring(peer);
  Linked& linked = linked_[linked_count_];
  linked = {request, piece};
  linked.request.wr_id = work_id(work, peer, queue.posted());
  linked.request.sg_list = &linked.piece;
  linked.request.num_sge = piece.length > 0 ? 1 : 0;
  if (piece.length > 0 && piece.length <= peer.connection.inline_bytes()) linked.request.send_flags |= IBV_SEND_INLINE;
  if (queue.add(sequence, signaled)) linked.request.send_flags |= IBV_SEND_SIGNALED;
  if (linked_count_ > 0) linked_[linked_count_ - 1].request.next = &linked.request;
  ++linked_count_;
  return true;
}

// One call of the device, and one doorbell, for all that is linked.
void Transport::ring(Peer& peer) {
  if (linked_count_ == 0) return;
  const std::span all = std::span(linked_).first(std::exchange(linked_count_, 0));
  ibv_send_wr* bad = nullptr;
  const int code = ibv_post_send(peer.connection.queue_pair(), &all[0].request, &bad);
  for (const Linked& linked : all)  // until here it is the key that the device knows
    if (linked.request.opcode == IBV_WR_BIND_MW) linked.request.bind_mw.mw->rkey = linked.request.bind_mw.rkey;
  if (code == 0) return;
  // There was room, so this is the device's trouble: what was not delivered goes out again over a new connection.
  log(LogLevel::kError, "rank {}: to rank {}: {}", rank_, peer.rank,
      verbs_error(device(), "ibv_post_send", code).text());
  connect_anew(peer);
}

// By itself. False: the send queue is full.
bool Transport::post(Peer& peer, const ibv_send_wr& request, Work work, uint64_t sequence, bool signaled) {
  if (!link(peer, request, {}, work, sequence, signaled)) return false;
  ring(peer);
  return true;
}

// The peer runs out of slots when it is not told in time what was consumed; messages tell it as well.
void Transport::tell_consumed(Peer& peer) {
  if (!peer.receiving.owes_credit() || !peer.connection.ready()) return;
  peer.channel->told_consumed = peer.receiving.released();
  const ibv_sge piece{reinterpret_cast<uintptr_t>(&peer.channel->told_consumed), sizeof(uint64_t),
                      peer.channel.staging_key()};
  if (link(peer, write_to(peer, offsetof(Landing, consumed)), piece, Work::kLocal, 0, false)) {
    peer.receiving.told();
    ++counters_.credits_told;
  } else {
    pump_later(peer);
  }
}

}  // namespace ibcoll::verbs
