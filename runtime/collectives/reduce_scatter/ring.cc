// SPDX-License-Identifier: BSD-3-Clause
// Reduce-scatter, ring: block i goes around once, from rank i + 1 on, and each rank adds its own operand; every rank
// sends to rank + 1 only (framework/scatter_rounds.h).
// Source: Thakur, Gropp. Any p; the operation must commute. Rounds: p - 1. Cost: (p-1) alpha + (p-1)/p n (beta +
// gamma).
#include "runtime/collectives/framework/scatter_rounds.h"
#include "runtime/collectives/reduce_scatter/reduce_scatter.h"

namespace ibcoll::reduce_scatter::ring {

Task among(Comm& c, Reduction reduction, Packed blocks, std::byte* work) {
  blocks = blocks.at_base();
  co_await ring_reduce_scatter(c, reduction, blocks.vector(), blocks, work);
  blocks.deliver(c.rank());
}

double cost_us(const Shape& s, const CostModel& m) {
  const double moved = static_cast<double>(s.total) * (s.p - 1) / s.p;
  return (s.p - 1) * m.message_us(0) + m.beta_us * moved + combine_landed_us(m, moved) + packing_us(s, m);
}

std::span<const Algorithm> rows() {
  static constexpr auto kRows =
      two_rows(row<among, cost_us>(IBCOLL_REDUCE_SCATTER, "ring",
                                   "Thakur, Gropp; commutative; (p-1) alpha + (p-1)/p n (beta + gamma)", Order::kOwn),
               IBCOLL_REDUCE_SCATTER_BLOCK);
  return kRows;
}

}  // namespace ibcoll::reduce_scatter::ring
