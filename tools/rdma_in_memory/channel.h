// SPDX-License-Identifier: BSD-3-Clause
// Completion channels: a datagram socket each, to which the process that adds an awaited completion sends
// the number of the queue.
#pragma once

#include "tools/rdma_in_memory/completions.h"

namespace ibcoll::rdma_in_memory {

uint32_t channel_number(const ibv_comp_channel* channel);
void add_to_channel(CompletionQueue& queue);
void remove_from_channel(CompletionQueue& queue);

}  // namespace ibcoll::rdma_in_memory
