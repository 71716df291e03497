// SPDX-License-Identifier: BSD-3-Clause
// Reduce-scatter, recursive doubling: in round k, ranks at distance 2^k exchange their partial results. A rank does not
// send the blocks of the ranks whose operands its result contains. When p is no power of two, the first 2 (p -
// 2^floor(lg p)) ranks pair up before, and one of each pair gets its block after.
// Source: Thakur, Gropp, reduce-scatter for operations that do not commute: neighbours come first, so operands stay in
// rank order. Rounds: floor(lg p) (+ 2). Cost: lg p alpha + n (lg p - (p-1)/p) (beta + gamma).
#include "runtime/collectives/reduce_scatter/paired_blocks.h"
#include "runtime/collectives/reduce_scatter/reduce_scatter.h"

namespace ibcoll::reduce_scatter::recursive_doubling {

Task among(Comm& c, Reduction reduction, Packed blocks, std::byte* work) {
  const PairedBlocks of(c.size(), blocks.at_base()), into(c.size(), Packed{work, blocks.starts, blocks.parts});
  co_await fold(c, reduction, blocks.vector(), work, of.pairs);
  const int self = of.pairs.virtual_of(c.rank()), end = of.pairs.core();
  for (int distance = 1; distance < end && !of.pairs.idle(c.rank()); distance *= 2) {
    const int mine = self & ~(distance - 1), theirs = mine ^ distance;  // where the groups begin
    const int partner = of.pairs.rank_of(self ^ distance);
    c.announce(partner, into.between(0, theirs));
    c.announce(partner, into.between(theirs + distance, end));
    c.put(partner, of.between(0, mine));
    c.put(partner, of.between(mine + distance, end));
    co_await c.received();
    co_await c.flushed();
    combine_in_order(reduction, of.between(0, theirs), into.between(0, theirs).data(), theirs < mine);
    combine_in_order(reduction, of.between(theirs + distance, end), into.between(theirs + distance, end).data(),
                     theirs < mine);
  }
  if (!of.pairs.in_pair(c.rank())) blocks.deliver(c.rank());
  co_await hand_over(c, blocks, of.pairs);
}

double cost_us(const Shape& s, const CostModel& m) {
  const double n = static_cast<double>(s.total);
  const PowerOfTwo pairs(s.p);
  const int rounds = ceil_log2(pairs.core());
  const double moved = n * std::max(rounds - 1.0 + 1.0 / pairs.core(), 0.0);
  const double folded = pairs.pairs() > 0 ? 2 * m.message_us(0) + move_and_combine_us(m, n) : 0;
  return rounds * (m.message_us(0) + m.stream_us(0)) + m.beta_us * moved + combine_landed_us(m, moved) + folded +
         packing_us(s, m);
}

std::span<const Algorithm> rows() {
  static constexpr auto kRows = two_rows(
      row<among, cost_us>(IBCOLL_REDUCE_SCATTER, "recursive_doubling",
                          "Thakur, Gropp; any order; lg p alpha + n (lg p - (p-1)/p) (beta + gamma)", Order::kDoubling),
      IBCOLL_REDUCE_SCATTER_BLOCK);
  return kRows;
}

}  // namespace ibcoll::reduce_scatter::recursive_doubling
