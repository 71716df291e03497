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
  Outgoing& out = peer->out(peer->accepted);
  out.unsent = true;
  out.bytes = from.size();
  out.from = from.data();
  out.to = to;
  out.token = token;
  out.source = source.ok() ? source.value() : nullptr;
  pump(*peer);
  return PutResult::kPending;
}

bool Transport::post_put(Peer& peer, uint64_t sequence, Outgoing& out) {
  while (out.posted < out.bytes) {
    ibv_sge piece{reinterpret_cast<uintptr_t>(out.from) + out.posted,
                  static_cast<uint32_t>(std::min(kLongestWrite, out.bytes - out.posted)), 0};
    std::byte(*bounce)[kBounceBytes] = nullptr;
    if (out.source) {
      piece.lkey = region_of(*out.source)->lkey;
    } else {
      bounce = free_bounce(peer);
      if (bounce == nullptr) return false;
      piece.length = std::min(piece.length, static_cast<uint32_t>(kBounceBytes));
      std::memcpy(*bounce, out.from + out.posted, piece.length);
      piece.addr = reinterpret_cast<uintptr_t>(*bounce);
      piece.lkey = peer.staging_region->lkey;
    }
    ibv_send_wr request{};
    request.opcode = IBV_WR_RDMA_WRITE;
    request.wr.rdma.remote_addr = out.to.address + out.posted;
    request.wr.rdma.rkey = key_at(peer, out.to);
    const bool signaled = bounce != nullptr || piece.length == kLongestWrite;  // who waits sees that it moves
    if (!link(peer, request, piece, Work::kSend, sequence | kData, signaled)) return false;
    if (bounce) peer.bounced[static_cast<size_t>(bounce - peer.channel->bounce)] = peer.posted;
    out.posted += piece.length;
  }
  return post_slot(peer, sequence, true, true);
}

std::byte (*Transport::free_bounce(Peer& peer))[kBounceBytes] {
  for (size_t i = 0; i < peer.bounced.size(); ++i)
    if (peer.completed >= peer.bounced[i]) return &peer.channel->bounce[i];
  return nullptr;
}

// Once: what happens to every put after that is the same.
void Transport::report_copies(const Status& why) {
  if (counters_.puts_copied++ == 0)
    log(LogLevel::kWarning, "verbs: rank {} cannot pin its send buffer and copies instead: {}", rank_, why.text());
}

uint32_t Transport::key_at(const Peer& peer, const RemoteRegion& to) const {
  for (const Rekey& rekey : peer.rekeyed)
    if (rekey.is_of(to)) return rekey.key;
  return static_cast<uint32_t>(to.key);
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
  if (peer.state != Peer::State::kReady || !peer.has_slot()) return false;  // the word of a fault need not arrive
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
