// SPDX-License-Identifier: BSD-3-Clause
// Reduce-scatter, recursive halving: in each round, ranks at distance p/2, p/4, ..., 1 send each other the half of the
// blocks that the other one's side owns, and combine their own half. When p is no power of two, the first 2 (p -
// 2^floor(lg p)) ranks pair up before, and one of each pair gets its block after.
// Source: Thakur, Gropp. Any p; the operation must commute.
// Rounds: floor(lg p) (+ 2). Cost: lg p alpha + (p-1)/p n (beta + gamma) (+ n (beta + gamma)).
#include "runtime/collectives/reduce_scatter/paired_blocks.h"
#include "runtime/collectives/reduce_scatter/reduce_scatter.h"

namespace ibcoll::reduce_scatter::recursive_halving {

Task among(Comm& c, Reduction reduction, Packed blocks, std::byte* work) {
  PairedBlocks of(c.size(), blocks);
  if (of.pairs.in_pair(c.rank())) of.blocks = blocks.at_base();
  co_await fold(c, reduction, blocks.vector(), work, of.pairs);
  if (!of.pairs.idle(c.rank())) {
    const int self = of.pairs.virtual_of(c.rank());
    int from = 0;  // virtual ranks from, ..., from + 2 distance - 1 still share their blocks
    for (int distance = of.pairs.core() / 2; distance > 0; distance /= 2) {
      const bool upper = (self & distance) != 0;
      const int partner = of.pairs.rank_of(self ^ distance), middle = from + distance;
      const int keeps = upper ? middle : from, gives = upper ? from : middle;
      const bool last = distance == 1 && !of.pairs.in_pair(c.rank());
      const Bytes own = last ? blocks.result_of(c.rank()) : of.between(keeps, keeps + distance);
      c.announce(partner, Bytes(work, own.size()));
      put_operand(c, partner, of.operand_between(gives, gives + distance), reduction.element_bytes());
      co_await combine_as_it_lands(c, reduction, own, of.operand_between(keeps, keeps + distance).data(), work, partner,
                                   0, upper);
      of.blocks.operand = nullptr;
      from = keeps;
    }
    co_await c.flushed();
  }
  co_await hand_over(c, blocks, of.pairs);
}

double cost_us(const Shape& s, const CostModel& m) {
  const double n = static_cast<double>(s.total);
  const PowerOfTwo pairs(s.p);
  const double halved = ceil_log2(pairs.core()) * m.message_us(0) + halve_us(m, n, pairs.core());
  if (pairs.pairs() == 0) return halved + packing_of_pieces_us(s, m);
  return halved + 2 * m.message_us(0) + move_and_combine_us(m, n) + packing_us(s, m);
}

// Only ranks that pair up because p is no power of two have that before and after the rounds.
double late_us(const Shape& s, const CostModel& m) {
  const PowerOfTwo pairs(s.p);
  const double folded = 2 * m.message_us(0) + move_and_combine_us(m, static_cast<double>(s.total));
  return cost_us(s, m) - (pairs.pairs() > 0 ? folded * (s.p - 2 * pairs.pairs()) / s.p : 0);
}

std::span<const Algorithm> rows() {
  static constexpr auto kRows =
      two_rows(row<among, cost_us, late_us>(IBCOLL_REDUCE_SCATTER, "recursive_halving",
                                            "Thakur, Gropp; commutative; lg p alpha + (p-1)/p n (beta + gamma)",
                                            Order::kOwn, AsExchange::kOfTwo),
               IBCOLL_REDUCE_SCATTER_BLOCK);
  return kRows;
}

}  // namespace ibcoll::reduce_scatter::recursive_halving
