// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/verbs/work_requests.h"

#include <span>
#include <utility>

#include "runtime/base/log.h"
#include "runtime/verbs/recovery.h"

namespace ibcoll::verbs {

void WorkRequests::post_all(Peer& peer) {
  const std::span all = std::span(linked_).first(std::exchange(linked_count_, 0));
  ibv_send_wr* bad = nullptr;
  const int code = ibv_post_send(peer.connection.queue_pair(), &all[0].request, &bad);
  for (const Linked& linked : all)  // until here it is the key that the device knows
    if (linked.request.opcode == IBV_WR_BIND_MW) linked.request.bind_mw.mw->rkey = linked.request.bind_mw.rkey;
  if (code == 0) [[likely]]
    return;
  // There was room, so this is an error of the device: what was not delivered goes out again over a new connection.
  log(LogLevel::kError, "rank {}: to rank {}: {}", local_.rank, peer.rank,
      verbs_error(local_.adapter.name(), "ibv_post_send", code).text());
  recovery_.connect_anew(peer);
}

bool WorkRequests::post(Peer& peer, const ibv_send_wr& request, Work work, uint64_t sequence, bool signaled) {
  ibv_send_wr* const linked = link(peer, {}, work, sequence, signaled);
  if (!linked) return false;
  fill_in(*linked, request);
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
