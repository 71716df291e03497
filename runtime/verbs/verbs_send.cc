// SPDX-License-Identifier: BSD-3-Clause
// Messages and puts on their way out.
#include <algorithm>
#include <cstring>

#include "runtime/log.h"
#include "runtime/verbs/verbs_transport.h"

namespace ibcoll {

using namespace verbs;

namespace {

constexpr uint64_t kSignalPeriod = 16;  // work requests
constexpr uint64_t kLongestWrite =
    1 << 22;  // bytes of one work request: an error is noticed, and others served, in between

uint32_t padded(size_t bytes) { return static_cast<uint32_t>((bytes + 7) & ~size_t{7}); }

}  // namespace

bool VerbsTransport::acceptable(int rank, Peer*& found) {
  found = find_or_make(rank);
  if (found == nullptr) return false;
  Peer& peer = *found;
  if (peer.state == Peer::State::kNew) start(peer);
  if (peer.left) {
    fail(peer, "it has left the job");
    report_failure(peer);
  }
  if (peer.state == Peer::State::kFailed || peer.failing) return false;
  if (peer.has_slot()) return true;  // what is accepted now leaves when the connection is there
  ++counters_.no_credit;
  return false;
}

Slot& VerbsTransport::stage(Peer& peer, SlotKind kind, const Note& note, std::span<const std::byte> payload) {
  const uint64_t sequence = ++peer.accepted;
  Outgoing& out = peer.out(sequence);
  if (out.unsent) give_sent(peer, out);  // its slot is free, so the peer has consumed it
  out = {};
  out.sequence = sequence;
  out.kind = kind;
  Slot& slot = peer.staged(sequence);
  const uint32_t room = padded(payload.size());
  if (!payload.empty()) std::memcpy(slot.payload + kSlotPayload - room, payload.data(), payload.size());
  slot.header = {note, peer.consumed_here, static_cast<uint32_t>(payload.size()), kind, 0, 0, sequence};
  peer.told_consumed = peer.consumed_here;
  return slot;
}

bool VerbsTransport::send(int rank, const Note& note, std::span<const std::byte> payload) {
  Peer* peer = nullptr;
  if (payload.size() > kSlotPayload || !acceptable(rank, peer)) return false;
  stage(*peer, SlotKind::kMessage, note, payload);
  ++counters_.messages_sent;
  counters_.bytes_sent += payload.size();
  pump(*peer);
  return true;
}

PutResult VerbsTransport::put(int rank, const RemoteRegion& to, std::span<const std::byte> from, const Note& note,
                              uint64_t token) {
  Peer* peer = nullptr;
  if (!acceptable(rank, peer)) return PutResult::kBusy;
  Registration* source = nullptr;
  if (from.size() > peer->inline_bytes) {
    const Result<Registration*> pinned = registrations_->acquire({const_cast<std::byte*>(from.data()), from.size()});
    if (pinned.ok())
      source = pinned.value();
    else
      report_copies(pinned.status());
  }
  stage(*peer, SlotKind::kPut, note, {});
  Outgoing& out = peer->out(peer->accepted);
  out.unsent = true;
  out.bytes = from.size();
  out.from = from.data();
  out.to = to;
  out.token = token;
  out.source = source;
  ++counters_.puts_sent;
  counters_.bytes_sent += from.size();
  pump(*peer);
  return PutResult::kPending;
}

void VerbsTransport::give_sent(Peer& peer, Outgoing& out) {
  if (out.source) registrations_->release(out.source);
  out.source = nullptr;
  sent_.push_back({peer.rank, out.token});
  out.unsent = false;
}

// Posts what was accepted, in order, as far as the send queue has room.
void VerbsTransport::pump(Peer& peer) {
  if (peer.state != Peer::State::kReady) return;
  bool room = bind_windows(peer);
  while (room && peer.posted_up_to < peer.accepted) {
    const uint64_t sequence = peer.posted_up_to + 1;
    Outgoing& out = peer.out(sequence);
    room = out.kind == SlotKind::kPut
               ? post_put(peer, sequence, out)
               : post_slot(peer, sequence, peer.they_want == Notify::kImmediate, out.kind == SlotKind::kLeaving);
    if (room) peer.posted_up_to = sequence;
  }
  if (room) tell_consumed(peer);
  if (!room) pump_later(peer);
}

void VerbsTransport::pump_later(Peer& peer) {
  if (std::find(pumped_.begin(), pumped_.end(), &peer) == pumped_.end()) pumped_.push_back(&peer);
}

void VerbsTransport::retry_pumps() {
  if (pumped_.empty()) return;
  const std::vector<Peer*> waiting = std::move(pumped_);
  pumped_.clear();
  for (Peer* peer : waiting) pump(*peer);
}

bool VerbsTransport::post_put(Peer& peer, uint64_t sequence, Outgoing& out) {
  while (out.posted < out.bytes) {
    ibv_sge piece{reinterpret_cast<uintptr_t>(out.from) + out.posted,
                  static_cast<uint32_t>(std::min(kLongestWrite, out.bytes - out.posted)), 0};
    const bool as_inline = piece.length <= peer.inline_bytes;
    std::byte(*bounce)[kBounceBytes] = nullptr;
    if (out.source) {
      piece.lkey = region_of(*out.source)->lkey;
    } else if (!as_inline) {
      bounce = free_bounce(peer);
      if (bounce == nullptr) return false;
      piece.length = std::min(piece.length, static_cast<uint32_t>(kBounceBytes));
      std::memcpy(*bounce, out.from + out.posted, piece.length);
      piece.addr = reinterpret_cast<uintptr_t>(*bounce);
      piece.lkey = peer.staging_region->lkey;
    }
    ibv_send_wr request{};
    request.sg_list = &piece;
    request.num_sge = 1;
    request.opcode = IBV_WR_RDMA_WRITE;
    request.send_flags = as_inline ? IBV_SEND_INLINE : 0;
    request.wr.rdma.remote_addr = out.to.address + out.posted;
    request.wr.rdma.rkey = key_at(peer, out.to);
    if (!post(peer, request, Work::kSend, sequence | kData, bounce != nullptr)) return false;
    if (bounce) peer.bounced[static_cast<size_t>(bounce - peer.channel->bounce)] = peer.posted;
    out.posted += piece.length;
  }
  return post_slot(peer, sequence, true, true);
}

std::byte (*VerbsTransport::free_bounce(Peer& peer))[kBounceBytes] {
  for (size_t i = 0; i < peer.bounced.size(); ++i)
    if (peer.completed >= peer.bounced[i]) return &peer.channel->bounce[i];
  return nullptr;
}

// Once: what happens to every put after that is the same.
void VerbsTransport::report_copies(const Status& why) {
  if (counters_.puts_copied++ == 0)
    log(LogLevel::kWarning, "verbs: rank {} cannot pin its send buffer and copies instead: {}", rank_, why.text());
}

bool VerbsTransport::post_slot(Peer& peer, uint64_t sequence, bool immediate, bool signaled) {
  Slot& slot = peer.staged(sequence);
  const uint32_t bytes = padded(slot.header.bytes) + static_cast<uint32_t>(sizeof slot.header);
  const size_t offset = sizeof(Slot) - bytes;
  ibv_sge piece{reinterpret_cast<uintptr_t>(&slot) + offset, bytes, peer.staging_region->lkey};
  ibv_send_wr request{};
  request.sg_list = &piece;
  request.num_sge = 1;
  request.opcode = immediate ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE;
  request.imm_data = static_cast<uint32_t>(sequence);
  request.send_flags = bytes <= peer.inline_bytes ? IBV_SEND_INLINE : 0;
  request.wr.rdma.remote_addr =
      peer.remote_landing + offsetof(Landing, slots) + (sequence - 1) % kSlots * sizeof(Slot) + offset;
  request.wr.rdma.rkey = peer.remote_key;
  return post(peer, request, Work::kSend, sequence, signaled);
}

// Writes nothing; its completion tells that the peer's device answers, or that what was posted before has completed.
ibv_send_wr VerbsTransport::empty_write(const Peer& peer) {
  ibv_send_wr request{};
  request.opcode = IBV_WR_RDMA_WRITE;
  request.wr.rdma.remote_addr = peer.remote_landing;
  request.wr.rdma.rkey = peer.remote_key;
  return request;
}

// False: the send queue is full.
bool VerbsTransport::post(Peer& peer, ibv_send_wr& request, Work work, uint64_t sequence, bool signaled) {
  if (peer.send_room() == 0) return false;
  if (signaled || peer.posted - peer.signaled >= kSignalPeriod) request.send_flags |= IBV_SEND_SIGNALED;
  request.wr_id = work_id(work, peer, peer.posted);
  ibv_send_wr* bad = nullptr;
  if (ibv_post_send(peer.queue_pair.get(), &request, &bad) != 0) return false;
  if ((request.send_flags & IBV_SEND_SIGNALED) != 0) peer.signaled = peer.posted;
  peer.sequence_of[peer.posted++ % kSendDepth] = sequence;
  return true;
}

// The peer runs out of slots when it is not told in time what was consumed; messages tell it as well.
void VerbsTransport::tell_consumed(Peer& peer) {
  if (peer.consumed_here - peer.told_consumed < kSlots / 2 || peer.state != Peer::State::kReady) return;
  peer.channel->told_consumed = peer.consumed_here;
  ibv_sge piece{reinterpret_cast<uintptr_t>(&peer.channel->told_consumed), sizeof(uint64_t), peer.staging_region->lkey};
  ibv_send_wr request{};
  request.sg_list = &piece;
  request.num_sge = 1;
  request.opcode = IBV_WR_RDMA_WRITE;
  request.send_flags = sizeof(uint64_t) <= peer.inline_bytes ? IBV_SEND_INLINE : 0;
  request.wr.rdma.remote_addr = peer.remote_landing + offsetof(Landing, consumed);
  request.wr.rdma.rkey = peer.remote_key;
  if (post(peer, request, Work::kLocal, 0, false)) {
    peer.told_consumed = peer.consumed_here;
    ++counters_.credits_told;
  } else {
    pump_later(peer);
  }
}

uint32_t VerbsTransport::key_at(const Peer& peer, const RemoteRegion& to) const {
  for (const Rekey& rekey : peer.rekeyed)
    if (rekey.exposure == to.key >> 32) return rekey.key;
  return static_cast<uint32_t>(to.key);
}

}  // namespace ibcoll
