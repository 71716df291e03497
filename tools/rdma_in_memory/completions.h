// SPDX-License-Identifier: BSD-3-Clause
// Completion queues: a ring in the file, to which any process adds, and which its owner polls.
#pragma once

#include <deque>
#include <utility>

#include "tools/rdma_in_memory/layout.h"

namespace ibcoll::rdma_in_memory {

struct CompletionQueue : ibv_cq {
  uint32_t index = 0;
  Lock polling;
  uint64_t next = 0;  // to be polled
  Completion* ring = nullptr;
  uint32_t mask = 0, empty_polls = 0;
  std::deque<std::pair<uint64_t, ibv_wc>> sent;  // of this process's own requests, with the time that they are due at
};

// Adds the completion of a request of this process. `due`: 0, or the time before which it is not polled.
void add_own(ibv_cq* queue, const ibv_wc& what, uint64_t due);
// Adds the completion of a receive of any process.
void add_to(uint32_t queue, const ibv_wc& what, uint64_t due);
ibv_wc flushed(uint64_t id, uint32_t queue_pair);

int poll(ibv_cq* queue, int most, ibv_wc* found);
int request_notice(ibv_cq* queue, int solicited_only);

// A datagram to the socket of a channel: one of its queues has a completion.
void wake(uint32_t channel, uint32_t queue);

}  // namespace ibcoll::rdma_in_memory
