// SPDX-License-Identifier: BSD-3-Clause
// Queue pairs from ibv_create_qp to ibv_destroy_qp, and their states.
#include "tests/fake_verbs/queue_pair.h"

#include <algorithm>

namespace ibcoll::fake_verbs {

bool QueuePair::reads(const Region& region) const {
  return std::any_of(requests.begin(), requests.end(), [&](const WorkRequest& request) {
    return request.inlined.empty() && state == IBV_QPS_RTS &&
           std::any_of(request.sges.begin(), request.sges.end(),
                       [&](const ibv_sge& sge) { return sge.lkey == region.lkey; });
  });
}

bool QueuePair::will_bind(const Window& window) const {
  return state == IBV_QPS_RTS && std::any_of(requests.begin() + static_cast<ptrdiff_t>(executed), requests.end(),
                                             [&](const WorkRequest& request) {
                                               return request.request.opcode == IBV_WR_BIND_MW &&
                                                      request.request.bind_mw.mw == &window;
                                             });
}

int QueuePair::to_init(const ibv_qp_attr& wanted, int mask) {
  const int needed =
      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | (qp_type == IBV_QPT_RC ? IBV_QP_ACCESS_FLAGS : IBV_QP_QKEY);
  if (state != IBV_QPS_RESET || mask != needed || wanted.port_num != 1 || wanted.pkey_index != 0) return EINVAL;
  access = static_cast<int>(wanted.qp_access_flags);
  key = wanted.qkey;
  return 0;
}

int QueuePair::to_ready_to_receive(const ibv_qp_attr& wanted, int mask) {
  if (state != IBV_QPS_INIT) return EINVAL;
  if (qp_type == IBV_QPT_UD) return mask == IBV_QP_STATE ? 0 : EINVAL;
  constexpr int kNeeded = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                          IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  const Traits& traits = rank_of(context).traits;
  if (mask != kNeeded || wanted.path_mtu < IBV_MTU_256 || wanted.path_mtu > traits.mtu || wanted.rq_psn >> 24 != 0)
    return EINVAL;
  if (traits.ethernet && wanted.ah_attr.is_global == 0) return EINVAL;
  attributes = wanted;
  return 0;
}

int QueuePair::to_ready_to_send(const ibv_qp_attr& wanted, int mask) {
  if (state != IBV_QPS_RTR) return EINVAL;
  if (qp_type == IBV_QPT_UD) return mask == (IBV_QP_STATE | IBV_QP_SQ_PSN) ? 0 : EINVAL;
  constexpr int kNeeded =
      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;
  if (mask != kNeeded || wanted.retry_cnt > 7 || wanted.rnr_retry > 7 || wanted.sq_psn >> 24 != 0) return EINVAL;
  rank_of(context).ready = wanted;
  attributes.sq_psn = wanted.sq_psn;
  retries_left = attributes.retry_cnt = wanted.retry_cnt;
  receiver_retries_left = attributes.rnr_retry = wanted.rnr_retry;
  return 0;
}

int QueuePair::modify(const ibv_qp_attr& wanted, int mask) {
  if (is_removed(context)) return EIO;
  if ((mask & IBV_QP_STATE) == 0) return EINVAL;
  if (const int code = faults().modify ? faults().modify(qp_type, wanted.qp_state) : 0; code != 0) return code;
  int code = 0;
  switch (wanted.qp_state) {
    case IBV_QPS_RESET:
      clear();
      break;
    case IBV_QPS_INIT:
      code = to_init(wanted, mask);
      break;
    case IBV_QPS_RTR:
      code = to_ready_to_receive(wanted, mask);
      break;
    case IBV_QPS_RTS:
      code = to_ready_to_send(wanted, mask);
      break;
    case IBV_QPS_ERR:
      enter_error();
      break;
    default:
      code = EINVAL;
  }
  if (code == 0) state = wanted.qp_state;
  return code;
}

void QueuePair::enter_error() {
  if (state == IBV_QPS_ERR || state == IBV_QPS_RESET) return;
  state = IBV_QPS_ERR;
  end_landing();
}

void QueuePair::clear() {
  for (const auto& message : landing) message->lost = true;
  landing.clear();
  requests.clear();
  receives.clear();
  executed = 0;
  unreported = requests_held = receives_held = 0;
  ++life;
}

}  // namespace ibcoll::fake_verbs

using namespace ibcoll::fake_verbs;

extern "C" {

ibv_qp* ibv_create_qp(ibv_pd* domain, ibv_qp_init_attr* wanted) {
  const Lock lock(fabric().mutex);
  Rank& rank = rank_of(domain->context);
  if (rank.traits.removed) return refuse<ibv_qp>(EIO);
  const int code = rank.faults.create_qp ? rank.faults.create_qp(wanted->qp_type) : 0;
  if (code != 0) return refuse<ibv_qp>(code);
  if (wanted->cap.max_inline_data > rank.traits.most_inline || wanted->send_cq == nullptr ||
      wanted->recv_cq == nullptr || (wanted->qp_type != IBV_QPT_RC && wanted->qp_type != IBV_QPT_UD))
    return refuse<ibv_qp>(EINVAL);
  const auto in_use = std::count_if(fabric().queue_pairs.begin(), fabric().queue_pairs.end(),
                                    [&](const QueuePair* other) { return other->context == domain->context; });
  if (in_use >= rank.traits.most_queue_pairs) return refuse<ibv_qp>(ENOMEM);
  auto* const made = new QueuePair();
  made->context = domain->context;
  made->pd = domain;
  made->send_cq = wanted->send_cq;
  made->recv_cq = wanted->recv_cq;
  ++made->send_queue().users;
  ++made->receive_queue().users;
  made->qp_type = wanted->qp_type;
  made->state = IBV_QPS_RESET;
  made->cap = wanted->cap;
  made->signal_all = wanted->sq_sig_all != 0;
  made->qp_num = fabric().new_number();
  fabric().queue_pairs.push_back(made);
  ++fabric().objects;
  return made;
}

int ibv_modify_qp(ibv_qp* queue_pair, ibv_qp_attr* wanted, int mask) {
  const Lock lock(fabric().mutex);
  return static_cast<QueuePair*>(queue_pair)->modify(*wanted, mask);
}

int ibv_query_qp_data_in_order(ibv_qp*, ibv_wr_opcode opcode, uint32_t flags) {
  const Lock lock(fabric().mutex);
  return opcode == IBV_WR_RDMA_WRITE && flags == 0 && fabric().script.landing == Landing::kInOrder ? 1 : 0;
}

int ibv_destroy_qp(ibv_qp* queue_pair) {
  const Lock lock(fabric().mutex);
  auto* const gone = static_cast<QueuePair*>(queue_pair);
  gone->enter_error();
  while (rank_of(gone->context).traits.flushes_late && gone->flush()) {
  }
  gone->clear();
  for (const auto& [key, window] : fabric().windows)
    if (window->queue_pair == gone->qp_num) unbind(*window);
  --gone->send_queue().users;
  --gone->receive_queue().users;
  std::erase(fabric().queue_pairs, gone);
  fabric().free_numbers.push_back(gone->qp_num);
  delete gone;
  --fabric().objects;
  return 0;
}

}  // extern "C"
