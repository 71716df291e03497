// SPDX-License-Identifier: BSD-3-Clause
#include "tools/rdma_in_memory/receives.h"

#include <algorithm>
#include <cerrno>
#include <mutex>

#include "tools/rdma_in_memory/file.h"
#include "tools/rdma_in_memory/index.h"

namespace ibcoll::rdma_in_memory {
namespace {

Indices receive_indices(&Layout::receive_queues, kReceiveQueues);

SharedReceives& receives_of(uint32_t index) { return File::get().layout().receive_queue[index]; }

PostedReceive* ring_of(const SharedReceives& queue) {
  return reinterpret_cast<PostedReceive*>(File::get().at(queue.ring));
}

bool fits(const ibv_recv_wr& request) { return request.num_sge >= 0 && request.num_sge <= int{kMostReceiveSges}; }

}  // namespace

int make_receives(ReceiveQueue& queue, uint32_t most) {
  uint32_t size = 16;
  while (size < most) size *= 2;
  queue.index = receive_indices.take();
  if (queue.index == 0) return ENOMEM;
  SharedReceives& all = receives_of(queue.index);
  all.ring = File::get().allocate(size * sizeof(PostedReceive));
  if (all.ring == 0) {
    receive_indices.give_back(queue.index);
    return ENOMEM;
  }
  all.head.store(0);
  all.mask = size - 1;
  queue.most = most;
  return 0;
}

void end_receives(ReceiveQueue& queue) {
  SharedReceives& all = receives_of(queue.index);
  File::get().release(all.ring, (uint64_t{all.mask} + 1) * sizeof(PostedReceive));
  receive_indices.give_back(queue.index);
}

int post_receives(ReceiveQueue& queue, ibv_recv_wr* first, ibv_recv_wr** bad) {
  SharedReceives& all = receives_of(queue.index);
  const std::lock_guard guard(queue.posting);
  for (ibv_recv_wr* request = first; request != nullptr; request = request->next) {
    if (queue.tail - queue.head_seen >= queue.most) queue.head_seen = all.head.load(std::memory_order_acquire);
    const bool full = queue.tail - queue.head_seen >= queue.most;
    if (full || !fits(*request)) {
      *bad = request;
      return full ? ENOMEM : EINVAL;
    }
    PostedReceive& entry = ring_of(all)[queue.tail & all.mask];
    entry.id = request->wr_id;
    entry.count = static_cast<uint32_t>(request->num_sge);
    std::copy_n(request->sg_list, request->num_sge, entry.sges);
    entry.number.store(++queue.tail, std::memory_order_release);
  }
  return 0;
}

bool take_receive(uint32_t queue, TakenReceive& taken) {
  SharedReceives& all = receives_of(queue);
  uint64_t head = all.head.load(std::memory_order_acquire);
  for (;;) {
    const PostedReceive& first = ring_of(all)[head & all.mask];
    if (first.number.load(std::memory_order_acquire) != head + 1) {
      const uint64_t now = all.head.load(std::memory_order_acquire);
      if (now == head) return false;
      head = now;  // another process has taken it
      continue;
    }
    taken.id = first.id;
    taken.count = std::min(first.count, kMostReceiveSges);
    std::copy_n(first.sges, taken.count, taken.sges);
    if (all.head.compare_exchange_weak(head, head + 1)) return true;
  }
}

int post_shared_receives(ibv_srq* queue, ibv_recv_wr* first, ibv_recv_wr** bad) {
  return post_receives(static_cast<SharedReceiveQueue*>(queue)->receives, first, bad);
}

}  // namespace ibcoll::rdma_in_memory

using namespace ibcoll::rdma_in_memory;

extern "C" {

ibv_srq* ibv_create_srq(ibv_pd* domain, ibv_srq_init_attr* wanted) {
  auto* const made = new SharedReceiveQueue();
  if (const int code = make_receives(made->receives, std::max(1U, wanted->attr.max_wr)); code != 0) {
    delete made;
    errno = code;
    return nullptr;
  }
  made->context = domain->context;
  made->pd = domain;
  made->srq_context = wanted->srq_context;
  wanted->attr.max_sge = kMostReceiveSges;
  return made;
}

int ibv_modify_srq(ibv_srq*, ibv_srq_attr*, int) { return EOPNOTSUPP; }  // no limits, no other size

int ibv_query_srq(ibv_srq* queue, ibv_srq_attr* attributes) {
  *attributes = {};
  attributes->max_wr = static_cast<SharedReceiveQueue*>(queue)->receives.most;
  attributes->max_sge = kMostReceiveSges;
  return 0;
}

int ibv_destroy_srq(ibv_srq* queue) {
  end_receives(static_cast<SharedReceiveQueue*>(queue)->receives);
  delete static_cast<SharedReceiveQueue*>(queue);
  return 0;
}

}  // extern "C"
