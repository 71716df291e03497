// SPDX-License-Identifier: BSD-3-Clause
// Puts: written straight into the peer's region from pinned memory, or, when they are small, carried by their note.
#include <algorithm>
#include <cstring>

#include "runtime/base/log.h"
#include "runtime/verbs/sender.h"

namespace ibcoll::verbs {
namespace {

constexpr uint64_t kLongestWrite =
    1 << 22;  // bytes of one work request: an error is noticed, and others served, in between

}  // namespace

PutResult Sender::put(Peer& peer, const RemoteRegion& to, std::span<const std::byte> from, const Note& note,
                      uint64_t token) {
  ++counters_.puts_sent;
  counters_.bytes_sent += from.size();
  if (from.size() <= kSmallPutBytes) {
    SlotHeader& header = stage(peer, SlotKind::kSmallPut, note, from).header;
    header.exposure = static_cast<uint32_t>(to.key >> 32);
    header.address = to.address;
    pump(peer);
    return PutResult::kDone;
  }
  local_.outbox.reserve_sent(puts_pending_);
  const Result<Registration*> source =
      local_.adapter.registrations().acquire({const_cast<std::byte*>(from.data()), from.size()});
  if (!source.ok()) report_copies(source.status());
  stage(peer, SlotKind::kPut, note, {});
  Outgoing& out = *peer.sending.find(peer.sending.accepted());
  out.sent_pending = true;
  ++puts_pending_;
  out.bytes = from.size();
  out.from = from.data();
  out.to = to;
  out.token = token;
  out.source = source.ok() ? source.value() : nullptr;
  pump(peer);
  return PutResult::kPending;
}

bool Sender::post_put(Peer& peer, Outgoing& out) {
  SendQueue& queue = peer.sending.queue;
  while (out.posted < out.bytes) {
    ibv_sge sge{reinterpret_cast<uintptr_t>(out.from) + out.posted,
                static_cast<uint32_t>(std::min(kLongestWrite, out.bytes - out.posted)), 0};
    size_t bounce = kBounces;
    if (out.source) {
      sge.lkey = region_of(*out.source)->lkey;
    } else {
      bounce = queue.free_bounce();
      if (bounce == kBounces) return false;
      sge.length = std::min(sge.length, static_cast<uint32_t>(kBounceBytes));
      std::memcpy(peer.channel->bounce[bounce], out.from + out.posted, sge.length);
      sge.addr = reinterpret_cast<uintptr_t>(peer.channel->bounce[bounce]);
      sge.lkey = peer.channel.staging_key();
    }
    const bool signaled = bounce != kBounces || sge.length == kLongestWrite;  // a waiting rank notices progress
    ibv_send_wr* const request = requests_.link(peer, sge, Work::kSend, out.sequence | kData, signaled);
    if (!request) return false;
    request->opcode = IBV_WR_RDMA_WRITE;
    request->wr.rdma.remote_addr = out.to.address + out.posted;
    request->wr.rdma.rkey = peer.new_keys.key_at(out.to);
    if (bounce != kBounces) queue.reads_bounce(bounce);
    out.posted += sge.length;
  }
  return post_slot(peer, out.sequence, true, true);
}

// Once: what happens to every put after that is the same.
void Sender::report_copies(const Status& why) {
  if (counters_.puts_copied++ == 0)
    log(LogLevel::kWarning, "verbs: rank {} cannot pin its send buffer and copies instead: {}", local_.rank,
        why.text());
}

void Sender::report_refused(const Peer& peer, uint64_t bytes, uint64_t address, const char* why) {
  ++counters_.puts_refused;
  log(LogLevel::kWarning, "verbs: rank {} has no right to write {} bytes at {:#x} of rank {}: not written ({})",
      local_.rank, bytes, address, peer.rank, why);
}

}  // namespace ibcoll::verbs
