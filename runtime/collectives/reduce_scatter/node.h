// SPDX-License-Identifier: BSD-3-Clause
// The phases on a node of a reduce-scatter that leaders do between nodes. Blocks are packed node after node.
#pragma once

#include "runtime/collectives/framework/node_reduce.h"
#include "runtime/collectives/reduce_scatter/reduce_scatter.h"

namespace ibcoll::reduce_scatter::node {

// [at, at + cell) of every block, node after node, to `to`. starts[i]: where those of node i begin.
void pack(const Args& a, const Placement& nodes, uint64_t at, uint64_t cell, std::byte* to, uint64_t* starts);
// The most bytes that pack() writes.
uint64_t packed_bytes(const Args& a, int p, uint64_t cell);
// Combines the packed blocks of the node's ranks at the leader, in their place.
Task combine_on_node(Comm& c, Reduction reduction, bool any_order, Packed blocks);
// Copies [at, at + cell) of each block of the node from the leader to the rank that the block is for.
Task hand_out(Comm& c, Args a, uint64_t at, uint64_t cell, ConstBytes blocks);

}  // namespace ibcoll::reduce_scatter::node
