// SPDX-License-Identifier: BSD-3-Clause
// Reduce-scatter on a circulant graph: ranks at falling distances of the graph exchange blocks in a row
// (framework/scatter_rounds.h).
// Source: Traff 2024. Any p; the operation must commute. Rounds: q = ceil(lg p). Cost: q alpha + (p-1)/p n (beta +
// gamma).
#include "runtime/collectives/framework/scatter_rounds.h"
#include "runtime/collectives/reduce_scatter/reduce_scatter.h"

namespace ibcoll::reduce_scatter::circulant {

Task among(Comm& c, Reduction reduction, Packed blocks, std::byte* work) {
  blocks = blocks.at_base();
  co_await circulant_reduce_scatter(c, reduction, blocks.vector(), blocks, work);
  blocks.deliver(c.rank());
}

double cost_us(const Shape& s, const CostModel& m) {
  const double moved = static_cast<double>(s.total) * (s.p - 1) / s.p;
  // Half of the messages go past the end of the vector.
  return ceil_log2(s.p) * (m.message_us(0) + m.stream_us(0) / 2) + m.beta_us * moved + combine_landed_us(m, moved) +
         packing_us(s, m);
}

std::span<const Algorithm> rows() {
  static constexpr auto kRows =
      two_rows(row<among, cost_us>(IBCOLL_REDUCE_SCATTER, "circulant",
                                   "Traff 2024; commutative; ceil(lg p) alpha + (p-1)/p n (beta + gamma)", Order::kOwn),
               IBCOLL_REDUCE_SCATTER_BLOCK);
  return kRows;
}

}  // namespace ibcoll::reduce_scatter::circulant
