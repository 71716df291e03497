// SPDX-License-Identifier: BSD-3-Clause
// Memory regions, and windows of type 2B on them.
#pragma once

#include "tools/rdma_in_memory/layout.h"

namespace ibcoll::rdma_in_memory {

struct Domain : ibv_pd {
  uint32_t number = 0;
};

ibv_mw* allocate_window(ibv_pd* domain, ibv_mw_type type);
int free_window(ibv_mw* window);
ibv_wc_status bind(const SharedQueuePair& on, const ibv_send_wr& request);
// No peer writes through the window any more when this returns.
ibv_wc_status invalidate(const SharedQueuePair& on, uint32_t key);

}  // namespace ibcoll::rdma_in_memory
