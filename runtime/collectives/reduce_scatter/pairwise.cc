// SPDX-License-Identifier: BSD-3-Clause
// Reduce-scatter, pairwise exchange: in round i, each rank sends rank + i its block and combines what comes from rank -
// i. Source: Thakur, Gropp, reduce-scatter for long messages. Any p; the operation must commute.
// Rounds: p - 1. Cost: (p-1) alpha + (p-1)/p n (beta + gamma).
#include "runtime/collectives/framework/halving.h"
#include "runtime/collectives/reduce_scatter/reduce_scatter.h"

namespace ibcoll::reduce_scatter::pairwise {

Task among(Comm& c, Reduction reduction, Packed blocks, std::byte* work) {
  const Bytes own = blocks.result_of(c.rank());
  const std::byte* mine = blocks.operand_between(c.rank(), c.rank() + 1).data();
  for (int i = 1; i < c.size(); ++i) {
    const int to = c.peer(i), from = c.peer(-i);
    c.announce(from, Bytes(work, own.size()));
    put_operand(c, to, blocks.operand_between(to, to + 1), reduction.element_bytes());
    co_await combine_as_it_lands(c, reduction, own, mine, work, from, 0, true);
    mine = own.data();
  }
  co_await c.flushed();
}

double cost_us(const Shape& s, const CostModel& m) {
  const double block = static_cast<double>(s.total) / s.p;
  return (s.p - 1) * (m.message_us(0) + move_and_combine_us(m, block)) + packing_of_pieces_us(s, m);
}

std::span<const Algorithm> rows() {
  static constexpr auto kRows =
      two_rows(row<among, cost_us>(IBCOLL_REDUCE_SCATTER, "pairwise",
                                   "Thakur, Gropp; commutative; (p-1) alpha + (p-1)/p n (beta + gamma)", Order::kOwn,
                                   AsExchange::kOfTwo),
               IBCOLL_REDUCE_SCATTER_BLOCK);
  return kRows;
}

}  // namespace ibcoll::reduce_scatter::pairwise
