// SPDX-License-Identifier: BSD-3-Clause
// Allreduce on one node by leaders: each of them combines a segment of all operands out of the node window and writes
// it back, and all ranks copy the segments. Where many ranks share a core, most of them then wait once, for the result;
// for vectors of more than 2 KB, all wait twice by shm.
// Source: as the phases of the node in Qian, Afsahi, Shm_Direct.
// Operands are combined in rank order, or as they come where the order does not matter.
// Cost, with k leaders: a step of the node window for each area of n bytes and one for k areas, 4 copies of n.
#include "runtime/collectives/framework/node_reduce.h"

namespace ibcoll::allreduce::shm_leaders {
namespace {

Task run(Comm& c, Args a) {
  const uint64_t element = a.reduction.element_bytes();
  const int leaders = owners_of(a.parameter, c.size(), c.node().area_bytes(), element);
  // The leaders' shares of an area, until each has an area of results.
  const auto k = static_cast<uint64_t>(leaders);
  const uint64_t piece = std::min(a.bytes, whole_elements(c.node().area_bytes() / k, element) * k * k);
  for (uint64_t at = 0; at < a.bytes; at += piece) {
    const Bytes result = part(a.buffer(), at, piece);
    const NodeOwners owners{Segments{result.size() / element, element, leaders}};
    const Bytes segment = c.rank() < leaders ? owners.segments.of(result, c.rank()) : Bytes();
    co_await reduce_on_node(c, owners, a.reduction, a.any_order(), part(a.operand(), at, piece), segment);
    co_await share_on_node(c, owners, segment, result);
  }
}

double cost_us(const Shape& s, const CostModel& m) {
  const int leaders = owners_of(s.parameter, s.p, s.area_bytes, s.element_bytes);
  return reduce_on_node_us(s, m, leaders) + share_on_node_us(s, m, leaders);
}

}  // namespace

std::span<const Algorithm> rows() {
  static constexpr Algorithm kRows[] = {{.collective = IBCOLL_ALLREDUCE,
                                         .name = "shm_leaders",
                                         .about = "node window; `leaders` ranks combine, all copy",
                                         .parameter = {Parameter::Unit::kCount, "leaders", 1, 1024},
                                         .run = run,
                                         .why_not = applies_to_reductions_on_one_node,
                                         .choose = best_owners<cost_us>,
                                         .cost_us = cost_us,
                                         .uses_window = true,
                                         .order = Order::kRanks}};
  return kRows;
}

}  // namespace ibcoll::allreduce::shm_leaders
