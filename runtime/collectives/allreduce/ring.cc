// SPDX-License-Identifier: BSD-3-Clause
// Allreduce, ring: segment i of the vector goes around once, from rank i + 1 on, and each rank adds its own operand;
// rank i, which completes it, sends the result around once more. Every rank sends to rank + 1 only.
// Source: Thakur, Gropp, reduce-scatter and allgather as rings (Patarasuk, Yuan 2009 for the bound). Any p; operands
// are combined in ring order, so the operation must commute; every rank gets the same bits.
// Rounds: 2 (p - 1). Cost: 2 (p-1) alpha + 2 (p-1)/p n beta + (p-1)/p n gamma.
#include "runtime/collectives/allreduce/allreduce.h"
#include "runtime/collectives/framework/scatter_rounds.h"

namespace ibcoll::allreduce::ring {

Task among(Comm& c, Args a, std::byte* work) {
  const Segments segments{a.count, a.reduction.element_bytes(), c.size()};
  c.copy(a.buffer(), a.operand());
  co_await ring_reduce_scatter(c, a.reduction, a.buffer(), segments, work);
  co_await ring_allgather(c, a.buffer(), segments);
}

double cost_us(const Shape& s, const CostModel& m) {
  const double n = static_cast<double>(s.bytes);
  const double moved = n * (s.p - 1) / s.p;
  return 2 * (s.p - 1) * m.message_us(0) + 2 * m.beta_us * moved + combine_landed_us(m, moved);
}

std::span<const Algorithm> rows() {
  static constexpr Algorithm kRows[] = {{.collective = IBCOLL_ALLREDUCE,
                                         .name = "ring",
                                         .about = "Thakur, Gropp; commutative; 2 (p-1) alpha + 2 n beta + n gamma",
                                         .run = in_pieces<among>,
                                         .why_not = needs_commutative,
                                         .cost_us = whole_us<cost_us>}};
  return kRows;
}

}  // namespace ibcoll::allreduce::ring
