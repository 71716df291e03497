// SPDX-License-Identifier: BSD-3-Clause
// Puts: written straight into the peer's region from pinned memory, or, when they are small, carried by their note.
#include <algorithm>
#include <cstring>

#include "runtime/base/log.h"
#include "runtime/verbs/transport.h"

namespace ibcoll::verbs {
namespace {

constexpr uint64_t kLongestWrite =
    1 << 22;  // bytes of one work request: an error is noticed, and others served, in between

}  // namespace

PutResult Transport::put(int rank, const RemoteRegion& to, std::span<const std::byte> from, const Note& note,
                         uint64_t token) {
  Peer* peer = nullptr;
  if (!acceptable(rank, peer)) return PutResult::kBusy;
  ++counters_.puts_sent;
  counters_.bytes_sent += from.size();
  if (from.size() <= kSmallPutBytes) {
    SlotHeader& header = stage(*peer, SlotKind::kSmallPut, note, from).header;
    header.exposure = static_cast<uint32_t>(to.key >> 32);
    header.address = to.address;
    pump(*peer);
    return PutResult::kDone;
  }
  const Result<Registration*> source = registrations_->acquire({const_cast<std::byte*>(from.data()), from.size()});
  if (!source.ok()) report_copies(source.status());
  stage(*peer, SlotKind::kPut, note, {});
  Outgoing& out = *peer->sending.find(peer->sending.accepted());
  out.unsent = true;
  out.bytes = from.size();
  out.from = from.data();
  out.to = to;
  out.token = token;
  out.source = source.ok() ? source.value() : nullptr;
  pump(*peer);
  return PutResult::kPending;
}

bool Transport::post_put(Peer& peer, Outgoing& out) {
  SendQueue& queue = peer.sending.queue;
  while (out.posted < out.bytes) {
    ibv_sge piece{reinterpret_cast<uintptr_t>(out.from) + out.posted,
                  static_cast<uint32_t>(std::min(kLongestWrite, out.bytes - out.posted)), 0};
    size_t bounce = kBounces;
    if (out.source) {
      piece.lkey = region_of(*out.source)->lkey;
    } else {
      bounce = queue.free_bounce();
      if (bounce == kBounces) return false;
      piece.length = std::min(piece.length, static_cast<uint32_t>(kBounceBytes));
      std::memcpy(peer.channel->bounce[bounce], out.from + out.posted, piece.length);
      piece.addr = reinterpret_cast<uintptr_t>(peer.channel->bounce[bounce]);
      piece.lkey = peer.channel.staging_key();
    }
    ibv_send_wr request{};
    request.opcode = IBV_WR_RDMA_WRITE;
    request.wr.rdma.remote_addr = out.to.address + out.posted;
    request.wr.rdma.rkey = peer.new_keys.key_at(out.to);
    const bool signaled = bounce != kBounces || piece.length == kLongestWrite;  // who waits sees that it moves
    if (!link(peer, request, piece, Work::kSend, out.sequence | kData, signaled)) return false;
    if (bounce != kBounces) queue.reads_bounce(bounce);
    out.posted += piece.length;
  }
  return post_slot(peer, out.sequence, true, true);
}

// Once: what happens to every put after that is the same.
void Transport::report_copies(const Status& why) {
  if (counters_.puts_copied++ == 0)
    log(LogLevel::kWarning, "verbs: rank {} cannot pin its send buffer and copies instead: {}", rank_, why.text());
}

// Under the same rights that the device enforces on a large one. False: the peer has none; it is told.
bool Transport::take_small_put(Peer& peer, const SlotHeader& header, const std::byte* payload) {
  const Exposure* const to = exposure_of(peer.rank, {0, 0, uint64_t{header.exposure} << 32});
  const uint64_t offset = to ? header.address - reinterpret_cast<uint64_t>(to->memory.data()) : 0;  // huge: before it
  if (to && offset <= to->memory.size() && header.bytes <= to->memory.size() - offset) {
    if (header.bytes > 0) std::memcpy(to->memory.data() + offset, payload, header.bytes);
    ++counters_.puts_received;
    return true;
  }
  report_dropped(peer);
  if (!peer.connection.ready() || !peer.sending.has_slot()) return false;  // the word of a fault need not arrive
  stage(peer, SlotKind::kRefused, {}, std::as_bytes(std::span(&header, 1)));
  pump(peer);
  return false;
}

void Transport::report_refused(const Peer& peer, uint64_t bytes, uint64_t address, const char* why) {
  ++counters_.puts_refused;
  log(LogLevel::kWarning, "verbs: rank {} has no right to write {} bytes at {:#x} of rank {}: not written ({})", rank_,
      bytes, address, peer.rank, why);
}

void Transport::report_dropped(const Peer& peer) {
  ++counters_.puts_dropped;
  log(LogLevel::kWarning, "verbs: rank {} tried to write to memory of rank {} that was not exposed to it: not written",
      peer.rank, rank_);
}

}  // namespace ibcoll::verbs
