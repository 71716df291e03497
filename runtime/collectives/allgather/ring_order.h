// SPDX-License-Identifier: BSD-3-Clause
// In which order a ring goes through the ranks of a team.
// Source: Traff, Ripke, Siebert, Balaji, Thakur, Gropp, "A Pipelined Algorithm for Large, Irregular All-Gather
// Problems", sections 2.2 and 2.3.
//
// The ranks of a node are neighbours: one rank of each node receives from another node, one sends to another. Within a
// node the ranks with data come last, so that each node sends data in the first round. The nodes with data are
// equidistant among the nodes without; on a team of one node, or of one rank a node, these are ranks.
#pragma once

#include <span>

#include "runtime/base/buffer.h"
#include "runtime/comm/placement.h"

namespace ibcoll::allgather {

// Fills `order`, of placement.size() ranks, with the team's ranks.
void ring_order(const Placement& placement, const Blocks& blocks, std::span<int> order) noexcept;

}  // namespace ibcoll::allgather
