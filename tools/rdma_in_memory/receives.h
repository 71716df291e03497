// SPDX-License-Identifier: BSD-3-Clause
// Posted receives: a ring in the file, which its owner fills, and from which senders take.
#pragma once

#include "tools/rdma_in_memory/layout.h"

namespace ibcoll::rdma_in_memory {

// The receives of a queue pair, or of several that share them.
struct ReceiveQueue {
  uint32_t index = 0, most = 0;
  Lock posting;
  uint64_t tail = 0, head_seen = 0;
};

struct SharedReceiveQueue : ibv_srq {
  ReceiveQueue receives;
};

struct TakenReceive {
  uint64_t id = 0;
  uint32_t count = 0;
  ibv_sge sges[kMostReceiveSges]{};
};

int make_receives(ReceiveQueue& queue, uint32_t most);  // ENOMEM: no memory, or no entry
void end_receives(ReceiveQueue& queue);
int post_receives(ReceiveQueue& queue, ibv_recv_wr* first, ibv_recv_wr** bad);
// The oldest receive of a queue of any process. False: none is posted.
bool take_receive(uint32_t queue, TakenReceive& taken);

int post_shared_receives(ibv_srq* queue, ibv_recv_wr* first, ibv_recv_wr** bad);

}  // namespace ibcoll::rdma_in_memory
