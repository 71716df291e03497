// SPDX-License-Identifier: BSD-3-Clause
// Allreduce on a circulant graph: a reduce-scatter in which ranks at falling distances of the graph exchange parts of
// the vector in a row, and the same rounds backwards (framework/scatter_rounds.h).
// Source: Traff 2024, reduce-scatter in q = ceil(lg p) rounds. Any p; the operation must commute; every rank gets the
// same bits. Rounds: 2 q. Cost: 2 q alpha + 2 (p-1)/p n beta + (p-1)/p n gamma.
#include "runtime/collectives/allreduce/allreduce.h"
#include "runtime/collectives/framework/scatter_rounds.h"

namespace ibcoll::allreduce::circulant {

Task among(Comm& c, Args a, std::byte* work) {
  const Segments segments{a.count, a.reduction.element_bytes(), c.size()};
  c.copy(a.buffer(), a.operand());
  co_await circulant_reduce_scatter(c, a.reduction, a.buffer(), segments, work);
  co_await circulant_allgather(c, a.buffer(), segments);
}

double cost_us(const Shape& s, const CostModel& m) {
  const double n = static_cast<double>(s.bytes);
  const double moved = n * (s.p - 1) / s.p;
  // Half of the messages go past the end of the vector.
  return ceil_log2(s.p) * (2 * m.message_us(0) + m.stream_us(0)) + 2 * m.beta_us * moved + combine_landed_us(m, moved);
}

std::span<const Algorithm> rows() {
  static constexpr Algorithm kRows[] = {{.collective = IBCOLL_ALLREDUCE,
                                         .name = "circulant",
                                         .about = "Traff 2024; commutative; 2 ceil(lg p) alpha + 2 n beta + n gamma",
                                         .run = in_pieces<among>,
                                         .why_not = needs_commutative,
                                         .cost_us = whole_us<cost_us>}};
  return kRows;
}

}  // namespace ibcoll::allreduce::circulant
