// SPDX-License-Identifier: BSD-3-Clause
// The ranks of a team in an order in which those of a node are neighbours, whatever their numbers: pipelines cross the
// links between nodes once.
#pragma once

#include "runtime/comm/comm.h"

namespace ibcoll {

// `root` first, then the other ranks of its node, then node after node. nullptr: no memory, the collective has failed.
inline int* ranks_by_node(Comm& c, int root) noexcept {
  int* const ranks = c.scratch_array<int>(static_cast<uint64_t>(c.size()));
  if (!ranks) return nullptr;
  const Placement& nodes = c.placement();
  int* next = ranks;
  *next++ = root;
  for (int i = 0; i < nodes.node_count(); ++i)
    for (const int rank : nodes.ranks_of((nodes.node_of(root) + i) % nodes.node_count()))
      if (rank != root) *next++ = rank;
  return ranks;
}

}  // namespace ibcoll
