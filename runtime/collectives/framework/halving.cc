// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/collectives/framework/halving.h"

namespace ibcoll {

void combine_in_order(const Reduction& reduction, Bytes mine, std::byte* theirs, bool from_lower) {
  if (mine.empty()) return;
  const uint64_t count = mine.size() / reduction.element_bytes();
  if (from_lower) {
    reduction(theirs, mine.data(), count);
  } else if (reduction.result_may_replace_lower()) {
    reduction.combine(mine.data(), theirs, mine.data(), count);
  } else if (reduction.op->commutative) {  // as the user says
    reduction(theirs, mine.data(), count);
  } else {
    reduction(mine.data(), theirs, count);
    Comm::copy(mine, ConstBytes(theirs, mine.size()));
  }
}

Task fold(Comm& c, Reduction reduction, Bytes vector, std::byte* work, PowerOfTwo pairs) {
  if (!pairs.in_pair(c.rank())) co_return;
  const int other = c.rank() ^ 1;
  if (pairs.idle(c.rank())) {
    c.put(other, vector);
  } else {
    c.announce(other, Bytes(work, vector.size()));
    co_await c.received_from(other);
    combine_in_order(reduction, vector, work, other < c.rank());
  }
  co_await c.flushed();
}

Task unfold(Comm& c, Bytes vector, PowerOfTwo pairs) {
  if (!pairs.in_pair(c.rank())) co_return;
  if (pairs.idle(c.rank()))
    c.announce(c.rank() ^ 1, vector);
  else
    c.put(c.rank() ^ 1, vector);
  co_await c.received();
  co_await c.flushed();
}

Task halve(Comm& c, Args a, std::byte* work, PowerOfTwo pairs, Halves* halves) {
  const int self = pairs.virtual_of(c.rank());
  Run own{0, a.count};
  size_t round = 0;
  for (int distance = 1; distance < pairs.core(); distance *= 2, ++round) {
    const bool upper = (self & distance) != 0;
    const int partner = pairs.rank_of(self ^ distance);
    halves->before[round] = own;
    c.put(partner, own.half(!upper).in(a));
    own = own.half(upper);
    c.announce(partner, Bytes(work, own.in(a).size()));
    co_await c.received();
    co_await c.flushed();
    combine_in_order(a.reduction, own.in(a), work, upper);
  }
  halves->own = own;
}

}  // namespace ibcoll
