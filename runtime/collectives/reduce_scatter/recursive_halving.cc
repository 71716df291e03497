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
  const PairedBlocks of(c.size(), blocks);
  co_await fold(c, reduction, blocks.vector(), work, of.pairs);
  if (!of.pairs.idle(c.rank())) {
    const int self = of.pairs.virtual_of(c.rank());
    int from = 0;  // virtual ranks from, ..., from + 2 distance - 1 still share their blocks
    for (int distance = of.pairs.core() / 2; distance > 0; distance /= 2) {
      const bool upper = (self & distance) != 0;
      const int partner = of.pairs.rank_of(self ^ distance), middle = from + distance;
      const Bytes own = upper ? of.between(middle, middle + distance) : of.between(from, middle);
      c.put(partner, upper ? of.between(from, middle) : of.between(middle, middle + distance));
      c.announce(partner, Bytes(work, own.size()));
      co_await c.received();
      combine_in_order(reduction, own, work, upper);
      if (upper) from = middle;
    }
    co_await c.flushed();
  }
  co_await hand_over(c, blocks, of.pairs);
}

double cost_us(const Shape& s, const CostModel& m) {
  const double n = static_cast<double>(s.total);
  const PowerOfTwo pairs(s.p);
  const double moved = n * (pairs.core() - 1) / pairs.core();
  const double folded = pairs.pairs() > 0 ? 2 * m.message_us(n / 2) + combine_landed_us(m, n) : 0;
  return ceil_log2(pairs.core()) * m.message_us(0) + m.beta_us * moved + combine_landed_us(m, moved) + folded +
         packing_us(s, m);
}

std::span<const Algorithm> rows() {
  static constexpr const char* kAbout = "Thakur, Gropp; commutative; lg p alpha + (p-1)/p n (beta + gamma)";
  static constexpr Algorithm kRows[] = {
      row<among, cost_us>(IBCOLL_REDUCE_SCATTER, "recursive_halving", kAbout, Order::kOwn),
      row<among, cost_us>(IBCOLL_REDUCE_SCATTER_BLOCK, "recursive_halving", kAbout, Order::kOwn)};
  return kRows;
}

}  // namespace ibcoll::reduce_scatter::recursive_halving
