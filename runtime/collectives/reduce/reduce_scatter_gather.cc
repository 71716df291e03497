// SPDX-License-Identifier: BSD-3-Clause
// Reduce by reduce-scatter and gather: ranks at distance 1, 2, 4, ... halve the part of the vector that they still
// share and combine one half each; then the same rounds backwards take the halves to the root.
// Source: Thakur, Gropp, reduce for long messages (Rabenseifner). Any p; operands stay in rank order, so the operation
// need not commute. Rounds: 2 floor(lg p) (+ 1). Cost: 2 lg p alpha + 2 (p-1)/p n beta + (p-1)/p n gamma (+ n beta + n
// gamma).
#include "runtime/collectives/framework/halving.h"
#include "runtime/collectives/reduce/reduce.h"

namespace ibcoll::reduce::reduce_scatter_gather {

Task among(Comm& c, Args a, std::byte* work) {
  const PowerOfTwo pairs(c.size(), a.root);
  if (pairs.in_pair(c.rank())) c.copy(a.buffer(), a.operand());
  co_await fold(c, a.reduction, a.buffer(), work, pairs);
  if (pairs.idle(c.rank())) co_return;
  Halves halves;
  co_await halve(c, a, work, pairs, &halves, GivenHalves::kAreGone);
  const int self = pairs.virtual_of(c.rank()), root = pairs.virtual_of(a.root);
  auto round = static_cast<size_t>(std::countr_zero(static_cast<unsigned>(pairs.core())));
  for (int distance = pairs.core() / 2; distance > 0; distance /= 2) {
    const bool upper = (self & distance) != 0;
    const int partner = pairs.rank_of(self ^ distance);
    const Run both = halves.before[--round];
    if ((self ^ root) & distance) {
      c.put(partner, both.half(upper).in(a));
      break;
    }
    c.announce(partner, both.half(!upper).in(a));
    co_await c.received();
  }
  co_await c.flushed();
}

int slots(int) { return 1; }

double cost_us(const Shape& s, const CostModel& m) {
  const double n = static_cast<double>(s.bytes);
  const PowerOfTwo pairs(s.p);
  const double moved = n * (pairs.core() - 1) / pairs.core();
  const double folded = pairs.pairs() > 0 ? m.message_us(0) + move_and_combine_us(m, n) : 0;
  return 2 * ceil_log2(pairs.core()) * m.message_us(0) + halve_us(m, n, pairs.core()) + m.beta_us * moved +
         m.own_copies_us(n) + folded;
}

// All rounds of the reduce-scatter wait for a late rank, and half of those of the gather, in the mean.
double late_us(const Shape& s, const CostModel& m) {
  return cost_us(s, m) - ceil_log2(PowerOfTwo(s.p).core()) * m.message_us(0) / 2;
}

std::span<const Algorithm> rows() {
  static constexpr Algorithm kRows[] = {
      {.collective = IBCOLL_REDUCE,
       .name = "reduce_scatter_gather",
       .about = "Thakur, Gropp; halving and gather; 2 lg p alpha + 2 n beta + n gamma",
       .run = in_pieces<among, slots>,
       .cost_us = cost_us,
       .late_us = late_us,
       .order = Order::kDoubling}};
  return kRows;
}

}  // namespace ibcoll::reduce::reduce_scatter_gather
