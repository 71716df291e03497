// SPDX-License-Identifier: BSD-3-Clause
// The requests that ibv_post_send and ibv_post_recv refuse at once.
#include <algorithm>

#include "tests/fake_verbs/queue_pair.h"

namespace ibcoll::fake_verbs {
namespace {

size_t bytes_of(const ibv_send_wr& request) {
  size_t bytes = 0;
  for (int i = 0; i < request.num_sge; ++i) bytes += request.sg_list[i].length;
  return bytes;
}

void count(const QueuePair& queue_pair, const ibv_send_wr& request) {
  if (queue_pair.qp_type != IBV_QPT_RC || queue_pair.is_own_peer()) return;  // greetings, trials
  Counts& counts = rank_of(queue_pair.context).counts;
  ++counts.requests[request.opcode];
  if ((request.send_flags & IBV_SEND_INLINE) != 0) ++counts.inlined;
  if ((request.send_flags & IBV_SEND_SIGNALED) != 0) ++counts.signaled;
}

}  // namespace

int QueuePair::post(const ibv_send_wr& request) {
  if (is_removed(context)) return EIO;
  if (state != IBV_QPS_RTS && state != IBV_QPS_SQE && state != IBV_QPS_ERR) return EINVAL;
  if (const int code = faults().post_send ? faults().post_send(request) : 0; code != 0) return code;
  if (requests_held == cap.max_send_wr) return ENOMEM;
  const bool is_inline = (request.send_flags & IBV_SEND_INLINE) != 0;
  const size_t bytes = bytes_of(request);
  if (request.num_sge > static_cast<int>(cap.max_send_sge) || (is_inline && bytes > cap.max_inline_data)) return EINVAL;
  if (qp_type == IBV_QPT_UD && request.opcode != IBV_WR_SEND) return EINVAL;
  // As soft-RoCE does, of which others see nothing.
  if (request.opcode == IBV_WR_BIND_MW && (request.num_sge > 0 || request.imm_data != 0)) return EINVAL;
  count(*this, request);
  ++requests_held;
  WorkRequest& posted = requests.emplace_back();
  posted.request = request;
  if (request.opcode == IBV_WR_BIND_MW) posted.not_before = fabric().now + fabric().script.bind_polls;
  posted.sges.assign(request.sg_list, request.sg_list + request.num_sge);
  if (is_inline)
    for (const ibv_sge& sge : posted.sges) {
      const auto* const from = reinterpret_cast<const std::byte*>(sge.addr);
      posted.inlined.insert(posted.inlined.end(), from, from + sge.length);
    }
  return 0;
}

int QueuePair::post(const ibv_recv_wr& request) {
  if (is_removed(context)) return EIO;
  if (state == IBV_QPS_RESET) return EINVAL;
  if (const int code = faults().post_receive ? faults().post_receive() : 0; code != 0) return code;
  if (receives_held == cap.max_recv_wr) return ENOMEM;
  if (request.num_sge > static_cast<int>(cap.max_recv_sge)) return EINVAL;
  ++receives_held;
  if (qp_type == IBV_QPT_RC) ++rank_of(context).counts.receives;
  receives.push_back({request.wr_id, {request.sg_list, request.sg_list + request.num_sge}});
  return 0;
}

int post_send(ibv_qp* queue_pair, ibv_send_wr* first, ibv_send_wr** bad) {
  const Lock lock(fabric().mutex);
  auto& to = static_cast<QueuePair&>(*queue_pair);
  if (to.qp_type == IBV_QPT_RC && !to.is_own_peer()) ++rank_of(queue_pair->context).counts.posts;
  for (*bad = first; *bad != nullptr; *bad = (*bad)->next)
    if (const int code = to.post(**bad); code != 0) return code;
  // As long as nothing before it has to wait.
  const auto is_bind = [](const WorkRequest& request) { return request.request.opcode == IBV_WR_BIND_MW; };
  if (fabric().script.binds_at_once)
    while (std::any_of(to.requests.begin() + static_cast<ptrdiff_t>(to.executed), to.requests.end(), is_bind))
      if (!to.execute(to.requests[to.executed]) || to.retry_at > fabric().now) break;
  // No rank polls while a queue pair writes to itself.
  constexpr int kMostMoves = 100'000;
  for (int i = 0; i < kMostMoves && to.is_own_peer() && (!to.requests.empty() || !to.landing.empty()); ++i) {
    ++fabric().now;
    to.move();
  }
  return 0;
}

int post_receive(ibv_qp* queue_pair, ibv_recv_wr* first, ibv_recv_wr** bad) {
  const Lock lock(fabric().mutex);
  if (queue_pair->qp_type == IBV_QPT_RC) ++rank_of(queue_pair->context).counts.receive_posts;
  for (*bad = first; *bad != nullptr; *bad = (*bad)->next)
    if (const int code = static_cast<QueuePair*>(queue_pair)->post(**bad); code != 0) return code;
  return 0;
}

}  // namespace ibcoll::fake_verbs
