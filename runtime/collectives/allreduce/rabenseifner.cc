// SPDX-License-Identifier: BSD-3-Clause
// Allreduce by reduce-scatter and allgather: in round k, ranks at distance 2^k halve the part of the vector that they
// still share, and each combines one half; then the same rounds backwards collect the halves. When p is no power of
// two, the first 2 (p - 2^floor(lg p)) ranks pair up before, and the idle ones get the result after.
// Source: Thakur, Gropp, allreduce for long messages (Rabenseifner). Any p. Neighbours come first, so partial results
// are those of neighbouring ranks, in rank order, and the operation need not commute.
// Rounds: 2 floor(lg p) (+ 2). Cost: 2 lg p alpha + 2 (p-1)/p n beta + (p-1)/p n gamma (+ 2 n beta + n gamma).
#include "runtime/collectives/allreduce/allreduce.h"
#include "runtime/collectives/framework/halving.h"

namespace ibcoll::allreduce::rabenseifner {

Task among(Comm& c, Args a, std::byte* work) {
  const PowerOfTwo pairs(c.size());
  if (pairs.in_pair(c.rank())) c.copy(a.buffer(), a.operand());
  co_await fold(c, a.reduction, a.buffer(), work, pairs);
  if (!pairs.idle(c.rank())) {
    const int self = pairs.virtual_of(c.rank());
    Halves halves;
    co_await halve(c, a, work, pairs, &halves, GivenHalves::kAnnounced);
    auto round = static_cast<size_t>(std::countr_zero(static_cast<unsigned>(pairs.core())));
    for (int distance = pairs.core() / 2; distance > 0; distance /= 2) {
      const bool upper = (self & distance) != 0;
      const int partner = pairs.rank_of(self ^ distance);
      c.put(partner, halves.before[--round].half(upper).in(a));
      co_await c.received_from(partner);
    }
    co_await c.flushed();
  }
  co_await unfold(c, a.buffer(), pairs);
}

double cost_us(const Shape& s, const CostModel& m) {
  const double n = static_cast<double>(s.bytes);
  const PowerOfTwo pairs(s.p);
  const double moved = n * (pairs.core() - 1) / pairs.core();
  const double folded = pairs.pairs() > 0 ? 2 * m.message_us(0) + move_and_combine_us(m, n) + m.beta_us * n : 0;
  return 2 * ceil_log2(pairs.core()) * m.message_us(0) + halve_us(m, n, pairs.core()) + m.beta_us * moved + folded;
}

std::span<const Algorithm> rows() {
  static constexpr Algorithm kRows[] = {
      {.collective = IBCOLL_ALLREDUCE,
       .name = "rabenseifner",
       .about = "Thakur, Gropp; reduce-scatter and allgather; 2 lg p alpha + 2 n beta + n gamma",
       .run = in_pieces<among>,
       .cost_us = whole_of_pairs_us<cost_us>,
       .order = Order::kDoubling}};
  return kRows;
}

}  // namespace ibcoll::allreduce::rabenseifner
