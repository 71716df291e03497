// SPDX-License-Identifier: BSD-3-Clause
// Where the blocks of a collective lie in the buffers of one rank.
#pragma once

#include <cstdint>
#include <vector>

#include "ibcoll.h"

namespace ibcoll::perf {

struct Block {
  uint64_t offset = 0;  // in its buffer
  uint64_t bytes = 0;
  int source = 0;       // rank it comes from
  int destination = 0;  // rank it goes to; 0 where every rank gets the same
};

struct Layout {
  std::vector<Block> send, recv;
  uint64_t send_bytes = 0, recv_bytes = 0;  // extent of the buffers
  bool send_in_recv = false;                // the send blocks lie in the receive buffer
  // As the v-collectives take them; empty for the others.
  std::vector<uint64_t> send_counts, send_displacements, recv_counts, recv_displacements;
};

struct LayoutParams {
  ibcoll_collective_t collective = IBCOLL_BARRIER;
  uint64_t bytes = 0;
  int rank = 0, size = 1, root = 0;
  bool in_place = false;
  // Irregular blocks from 0 to 2 x `bytes`, some of them empty, with gaps between them; else 1/2 to 3/2 and packed, as in
  // the programs that ibcoll is compared with. Both are `bytes` on average.
  bool hard = false;
};

Layout make_layout(const LayoutParams& params);

}  // namespace ibcoll::perf
