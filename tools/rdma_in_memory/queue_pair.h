// SPDX-License-Identifier: BSD-3-Clause
// Queue pairs: reliable connections and unreliable datagrams.
#pragma once

#include <array>
#include <cstddef>
#include <deque>

#include "tools/rdma_in_memory/receives.h"

namespace ibcoll::rdma_in_memory {

// A request that could not be executed when it was posted. It has the inlined data with it.
struct WaitingRequest {
  ibv_send_wr request{};
  std::array<ibv_sge, kMostSges> sges{};
  std::array<std::byte, kMostInline> inlined{};
  uint64_t since = 0;  // CLOCK_MONOTONIC nanoseconds; 0: it has not been tried
  uint64_t after = 0;  // polls
};

struct QueuePair : ibv_qp {
  uint32_t index = 0;
  ReceiveQueue receives;  // its own
  bool signal_all = false;
  ibv_qp_init_attr wanted{};
  ibv_qp_attr attributes{};
  Lock sending;
  std::deque<WaitingRequest> waiting;
};

SharedQueuePair& shared(const QueuePair& queue_pair);
// The entry that has this number, perhaps no more.
SharedQueuePair& entry_of(uint32_t number);

// Ends all, from any process: receives are flushed; the owner flushes the requests that wait. False: it had ended.
bool enter_error(SharedQueuePair& queue_pair);

// While it lives, what the queue pair may do stays so.
class Writing {
 public:
  explicit Writing(SharedQueuePair& by) : by_(by) { by_.busy.store(1); }
  Writing(const Writing&) = delete;
  Writing& operator=(const Writing&) = delete;
  ~Writing() { by_.busy.store(0, std::memory_order_release); }

 private:
  SharedQueuePair& by_;
};
// A right was taken away: until the queue pair of this number, or each, has ended what it began before.
void wait_for_writer(uint32_t number);
void wait_for_writers();

}  // namespace ibcoll::rdma_in_memory
