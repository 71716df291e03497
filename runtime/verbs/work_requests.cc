// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/verbs/work_requests.h"

#include <span>
#include <utility>

#include "runtime/base/log.h"
#include "runtime/verbs/recovery.h"

namespace ibcoll::verbs {

ibv_send_wr write_to(const Peer& peer, uint64_t landing_offset) {
  ibv_send_wr request{};
  request.opcode = IBV_WR_RDMA_WRITE;
  request.wr.rdma.remote_addr = peer.connection.remote.landing_address + landing_offset;
  request.wr.rdma.rkey = peer.connection.remote.landing_key;
  return request;
}

bool WorkRequests::link(Peer& peer, const ibv_send_wr& request, ibv_sge sge, Work work, uint64_t sequence,
                        bool signaled) {
  SendQueue& queue = peer.sending.queue;
  if (queue.room() <= (work == Work::kSend ? 1 : 0)) return false;  // the last entry is for liveness checks
  if (linked_count_ == linked_.size()) flush(peer);
  Linked& linked = linked_[linked_count_];
  linked = {request, sge};
  linked.request.wr_id = work_id(work, peer, queue.posted());
  linked.request.sg_list = &linked.sge;
  linked.request.num_sge = sge.length > 0 ? 1 : 0;
  if (sge.length > 0 && sge.length <= peer.connection.inline_bytes()) linked.request.send_flags |= IBV_SEND_INLINE;
  if (queue.add(sequence, signaled)) linked.request.send_flags |= IBV_SEND_SIGNALED;
  if (linked_count_ > 0) linked_[linked_count_ - 1].request.next = &linked.request;
  ++linked_count_;
  return true;
}

void WorkRequests::post_all(Peer& peer) {
  const std::span all = std::span(linked_).first(std::exchange(linked_count_, 0));
  ibv_send_wr* bad = nullptr;
  const int code = ibv_post_send(peer.connection.queue_pair(), &all[0].request, &bad);
  for (const Linked& linked : all)  // until here it is the key that the device knows
    if (linked.request.opcode == IBV_WR_BIND_MW) linked.request.bind_mw.mw->rkey = linked.request.bind_mw.rkey;
  if (code == 0) return;
  // There was room, so this is an error of the device: what was not delivered goes out again over a new connection.
  log(LogLevel::kError, "rank {}: to rank {}: {}", local_.rank, peer.rank,
      verbs_error(local_.adapter.name(), "ibv_post_send", code).text());
  recovery_.connect_anew(peer);
}

bool WorkRequests::post(Peer& peer, const ibv_send_wr& request, Work work, uint64_t sequence, bool signaled) {
  if (!link(peer, request, {}, work, sequence, signaled)) return false;
  flush(peer);
  return true;
}

Status WorkRequests::post_receives(Peer& peer, Work work, uint32_t count) const {
  std::array<ibv_recv_wr, kReceives> requests{};
  for (uint32_t i = 0; i < count; ++i) {
    requests[i].wr_id = work_id(work, peer, 0);
    requests[i].next = i + 1 < count ? &requests[i + 1] : nullptr;
  }
  ibv_recv_wr* bad = nullptr;
  if (const int code = ibv_post_recv(peer.connection.queue_pair(), requests.data(), &bad); code != 0)
    return verbs_error(local_.adapter.name(), "ibv_post_recv", code);
  return {};
}

}  // namespace ibcoll::verbs
