// SPDX-License-Identifier: BSD-3-Clause
#include "tools/rdma_in_memory/queue_pair.h"

#include <algorithm>
#include <cerrno>
#include <mutex>

#include "tools/rdma_in_memory/completions.h"
#include "tools/rdma_in_memory/file.h"
#include "tools/rdma_in_memory/index.h"
#include "tools/rdma_in_memory/model.h"
#include "tools/rdma_in_memory/regions.h"
#include "tools/rdma_in_memory/removal.h"
#include "tools/rdma_in_memory/send.h"

namespace ibcoll::rdma_in_memory {
namespace {

Indices pair_indices(&Layout::queue_pairs, kQueuePairs);

void wait_for(const SharedQueuePair& writer) {
  for (uint32_t round = 0; writer.busy.load() != 0; ++round)
    if (pause_in_loop(round) && File::get().has_ended(writer.process)) return;
}

void flush_receives(const SharedQueuePair& queue_pair) {
  if (queue_pair.receives_shared != 0) return;
  TakenReceive taken;
  while (take_receive(queue_pair.receives, taken))
    add_to(queue_pair.completions, flushed(taken.id, queue_pair.number.load()), 0);
}

void copy_attributes(QueuePair& to, const ibv_qp_attr& wanted, int mask) {
  SharedQueuePair& all = shared(to);
  if (mask & IBV_QP_QKEY) to.attributes.qkey = all.key = wanted.qkey;
  if (mask & IBV_QP_ACCESS_FLAGS) to.attributes.qp_access_flags = all.access = wanted.qp_access_flags;
  if (mask & IBV_QP_DEST_QPN) to.attributes.dest_qp_num = all.peer = wanted.dest_qp_num;
  if (mask & IBV_QP_MIN_RNR_TIMER) to.attributes.min_rnr_timer = wanted.min_rnr_timer;
  if (mask & IBV_QP_MIN_RNR_TIMER) all.not_ready_timer = wanted.min_rnr_timer & 31;
  if (mask & IBV_QP_AV) to.attributes.ah_attr = wanted.ah_attr;
  if (mask & IBV_QP_TIMEOUT) to.attributes.timeout = wanted.timeout;
  if (mask & IBV_QP_RETRY_CNT) to.attributes.retry_cnt = wanted.retry_cnt;
  if (mask & IBV_QP_RNR_RETRY) to.attributes.rnr_retry = wanted.rnr_retry;
  if (mask & IBV_QP_PORT) to.attributes.port_num = wanted.port_num;
  if (mask & IBV_QP_PATH_MTU) to.attributes.path_mtu = wanted.path_mtu;
  if (mask & IBV_QP_SQ_PSN) to.attributes.sq_psn = wanted.sq_psn;
  if (mask & IBV_QP_RQ_PSN) to.attributes.rq_psn = wanted.rq_psn;
}

bool may_follow(ibv_qp_state next, uint32_t state) {
  switch (next) {
    case IBV_QPS_RESET:
    case IBV_QPS_ERR:
      return true;
    case IBV_QPS_INIT:
      return state == IBV_QPS_RESET || state == IBV_QPS_INIT;
    case IBV_QPS_RTR:
      return state == IBV_QPS_INIT;
    case IBV_QPS_RTS:
      return state == IBV_QPS_RTR || state == IBV_QPS_RTS;
    default:
      return false;
  }
}

// Nobody writes by what it permitted when this returns.
void stop(QueuePair& queue_pair, ibv_qp_state state) {
  SharedQueuePair& all = shared(queue_pair);
  if (state == IBV_QPS_ERR)
    enter_error(all);
  else
    all.state.store(state);
  if (queue_pair.qp_type == IBV_QPT_UD)
    wait_for_writers();
  else
    wait_for_writer(all.peer);
}

void reset(QueuePair& queue_pair) {
  stop(queue_pair, IBV_QPS_RESET);
  queue_pair.waiting.clear();
  TakenReceive taken;
  while (queue_pair.srq == nullptr && take_receive(queue_pair.receives.index, taken)) {
  }
}

int fill(QueuePair& made, ibv_pd* domain, const ibv_qp_init_attr& wanted) {
  if (wanted.srq == nullptr) {
    if (const int code = make_receives(made.receives, std::max(1U, wanted.cap.max_recv_wr)); code != 0) return code;
  }
  made.index = pair_indices.take();
  if (made.index == 0) {
    if (wanted.srq == nullptr) end_receives(made.receives);
    return ENOMEM;
  }
  made.context = domain->context;
  made.pd = domain;
  made.qp_context = wanted.qp_context;
  made.send_cq = wanted.send_cq;
  made.recv_cq = wanted.recv_cq;
  made.srq = wanted.srq;
  made.qp_type = wanted.qp_type;
  made.state = IBV_QPS_RESET;
  made.signal_all = wanted.sq_sig_all != 0;
  made.wanted = wanted;
  SharedQueuePair& all = shared(made);
  // A number of 24 bits: the entry, and how often it has been used.
  const uint32_t last = all.number.load();
  const uint32_t number = last == 0 ? made.index + kQueuePairs : (last + kQueuePairs) & 0xffffff;
  all.type = wanted.qp_type;
  all.process = File::get().process();
  all.domain = static_cast<Domain*>(domain)->number;
  all.receives_shared = wanted.srq != nullptr;
  all.receives = wanted.srq ? static_cast<SharedReceiveQueue*>(wanted.srq)->receives.index : made.receives.index;
  all.completions = static_cast<CompletionQueue*>(wanted.recv_cq)->index;
  all.access = all.key = all.peer = all.not_ready_timer = 0;
  all.busy.store(0);
  all.state.store(IBV_QPS_RESET);
  all.number.store(number);
  made.qp_num = number;
  return 0;
}

}  // namespace

SharedQueuePair& shared(const QueuePair& queue_pair) { return File::get().layout().queue_pair[queue_pair.index]; }
SharedQueuePair& entry_of(uint32_t number) { return File::get().layout().queue_pair[number % kQueuePairs]; }

bool enter_error(SharedQueuePair& queue_pair) {
  if (queue_pair.state.exchange(IBV_QPS_ERR) == IBV_QPS_ERR) return false;
  flush_receives(queue_pair);
  return true;
}

void wait_for_writer(uint32_t number) {
  if (number != 0) wait_for(entry_of(number));
}

void wait_for_writers() {
  const Layout& all = File::get().layout();
  const uint32_t count = std::min(all.queue_pairs.load() + 1, kQueuePairs);
  for (uint32_t i = 1; i < count; ++i) wait_for(all.queue_pair[i]);
}

int post_receive(ibv_qp* which, ibv_recv_wr* first, ibv_recv_wr** bad) {
  auto& queue_pair = *static_cast<QueuePair*>(which);
  const SharedQueuePair& all = shared(queue_pair);
  if (queue_pair.srq != nullptr || all.state.load() == IBV_QPS_RESET) {
    *bad = first;
    return EINVAL;
  }
  const int code = post_receives(queue_pair.receives, first, bad);
  if (all.state.load() == IBV_QPS_ERR) flush_receives(all);  // perhaps only since then
  return code;
}

}  // namespace ibcoll::rdma_in_memory

using namespace ibcoll::rdma_in_memory;

extern "C" {

ibv_qp* ibv_create_qp(ibv_pd* domain, ibv_qp_init_attr* wanted) {
  const ibv_qp_cap& cap = wanted->cap;
  const bool possible = (wanted->qp_type == IBV_QPT_RC || wanted->qp_type == IBV_QPT_UD) &&
                        wanted->send_cq != nullptr && wanted->recv_cq != nullptr &&
                        cap.max_inline_data <= kMostInline && cap.max_send_sge <= kMostSges &&
                        cap.max_recv_sge <= kMostReceiveSges;
  auto* const made = possible ? new QueuePair() : nullptr;
  if (const int code = !made ? EINVAL : is_removed() ? EIO : fill(*made, domain, *wanted); code != 0) {
    delete made;
    errno = code;
    return nullptr;
  }
  wanted->cap.max_inline_data = kMostInline;
  wanted->cap.max_send_sge = kMostSges;
  wanted->cap.max_recv_sge = kMostReceiveSges;
  made->wanted.cap = wanted->cap;
  return made;
}

int ibv_modify_qp(ibv_qp* which, ibv_qp_attr* wanted, int mask) {
  auto& queue_pair = *static_cast<QueuePair*>(which);
  const std::lock_guard guard(queue_pair.sending);
  if ((mask & IBV_QP_STATE) && !may_follow(wanted->qp_state, shared(queue_pair).state.load())) return EINVAL;
  copy_attributes(queue_pair, *wanted, mask);
  if ((mask & IBV_QP_STATE) == 0) return 0;
  if (wanted->qp_state == IBV_QPS_ERR) {
    stop(queue_pair, IBV_QPS_ERR);
    flush_waiting(queue_pair);
  } else if (wanted->qp_state == IBV_QPS_RESET) {
    reset(queue_pair);
  } else {
    shared(queue_pair).state.store(wanted->qp_state);
  }
  queue_pair.state = wanted->qp_state;
  return 0;
}

int ibv_query_qp(ibv_qp* which, ibv_qp_attr* attributes, int, ibv_qp_init_attr* wanted) {
  const auto& queue_pair = *static_cast<QueuePair*>(which);
  *attributes = queue_pair.attributes;
  attributes->qp_state = attributes->cur_qp_state = static_cast<ibv_qp_state>(shared(queue_pair).state.load());
  attributes->cap = queue_pair.wanted.cap;
  *wanted = queue_pair.wanted;
  return 0;
}

int ibv_query_qp_data_in_order(ibv_qp*, ibv_wr_opcode opcode, uint32_t flags) {
  return opcode == IBV_WR_RDMA_WRITE && flags == 0 && model().in_order ? 1 : 0;
}

int ibv_destroy_qp(ibv_qp* which) {
  auto* const queue_pair = static_cast<QueuePair*>(which);
  forget_waiting(*queue_pair);
  {
    const std::lock_guard guard(queue_pair->sending);
    reset(*queue_pair);
  }
  if (queue_pair->srq == nullptr) end_receives(queue_pair->receives);
  pair_indices.give_back(queue_pair->index);
  delete queue_pair;
  return 0;
}

}  // extern "C"
