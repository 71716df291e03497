// SPDX-License-Identifier: BSD-3-Clause
// Allreduce, recursive doubling: in round k, ranks at distance 2^k exchange and combine their partial results. When p
// is no power of two, the first 2 (p - 2^floor(lg p)) ranks pair up before, and the idle ones get the result after.
// Source: Thakur, Gropp, allreduce. Any p; operands stay in rank order, so the operation need not commute.
// Rounds: floor(lg p) (+ 2). Cost: lg p (alpha + n beta + n gamma).
#include "runtime/collectives/allreduce/allreduce.h"
#include "runtime/collectives/framework/halving.h"

namespace ibcoll::allreduce::recursive_doubling {

Task among(Comm& c, Args a, std::byte* work) {
  const PowerOfTwo pairs(c.size());
  const Bytes result = a.buffer(), theirs(work, a.bytes);
  ConstBytes mine = a.operand();
  const bool in_pair = pairs.in_pair(c.rank());
  if (in_pair) {
    c.copy(result, mine);
    mine = result;
    co_await fold(c, a.reduction, a.buffer(), work, pairs);
  }
  const int self = pairs.virtual_of(c.rank());
  for (int distance = 1; distance < pairs.core() && !pairs.idle(c.rank()); distance *= 2) {
    const int other = self ^ distance, partner = pairs.rank_of(other);
    c.announce(partner, theirs);
    if (mine.data() != result.data()) {
      put_operand(c, partner, mine, a.reduction.element_bytes());
    } else {  // what is being sent must not change
      c.put(partner, mine);
      co_await c.received();
      co_await c.flushed();
    }
    if (a.bytes > kCombinedPiece) {
      co_await combine_as_it_lands(c, a.reduction, result, mine.data(), work, partner, 0, other < self);
    } else {
      co_await c.received_from(partner);
      combine_in_order(a.reduction, result, mine.data(), work, other < self);
    }
    mine = result;
  }
  co_await c.flushed();
  if (in_pair) co_await unfold(c, a.buffer(), pairs);
}

double cost_us(const Shape& s, const CostModel& m) {
  const double n = static_cast<double>(s.bytes);
  const int rounds = ceil_log2(s.p) + (std::has_single_bit(static_cast<unsigned>(s.p)) ? 0 : 1);
  const double later = (rounds - 1) * (m.beta_us * n + combine_landed_us(m, n));
  return rounds * m.message_us(0) + move_and_combine_us(m, n) + later;
}

std::span<const Algorithm> rows() {
  static constexpr Algorithm kRows[] = {{.collective = IBCOLL_ALLREDUCE,
                                         .name = "recursive_doubling",
                                         .about = "Thakur, Gropp; any p; lg p (alpha + n beta + n gamma)",
                                         .run = in_pieces<among>,
                                         .cost_us = whole_of_pairs_us<cost_us>,
                                         .order = Order::kDoubling,
                                         .as_exchange = AsExchange::kOfTwo}};
  return kRows;
}

}  // namespace ibcoll::allreduce::recursive_doubling
