// SPDX-License-Identifier: BSD-3-Clause
// The send queues of this process.
#pragma once

#include "tools/rdma_in_memory/queue_pair.h"

namespace ibcoll::rdma_in_memory {

int post_send(ibv_qp* queue_pair, ibv_send_wr* first, ibv_send_wr** bad);
int post_receive(ibv_qp* queue_pair, ibv_recv_wr* first, ibv_recv_wr** bad);

// Tries again the requests that wait for their peer, and ends those that have waited too long.
void run_waiting_requests();
// Under queue_pair.sending: all that wait complete, flushed.
void flush_waiting(QueuePair& queue_pair);
// The queue pair ends.
void forget_waiting(QueuePair& queue_pair);

// execute.cc
enum class Outcome { kDone, kError, kNoPeer, kNotReady };  // kDone, kError: it has completed
Outcome execute(QueuePair& queue_pair, const ibv_send_wr& request);
void complete(QueuePair& queue_pair, const ibv_send_wr& request, ibv_wc_status status, uint64_t due);
size_t bytes_of(const ibv_send_wr& request);
// Into the buffers of a receive of queue pair `at`, `skipped` bytes after their begin. Returns IBV_WC_SUCCESS, or what
// the sender learns.
struct TakenReceive;
ibv_wc_status scatter(const TakenReceive& to, const SharedQueuePair& at, const ibv_send_wr& request, uint64_t skipped);

// datagram.cc
struct AddressHandle : ibv_ah {
  ibv_ah_attr route{};
};
void send_datagram(const QueuePair& from, const ibv_send_wr& request);

}  // namespace ibcoll::rdma_in_memory
