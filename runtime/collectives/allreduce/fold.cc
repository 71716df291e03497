// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/collectives/allreduce/allreduce.h"
#include "runtime/collectives/framework/power_of_two.h"

namespace ibcoll::allreduce {

void combine_in_order(const Reduction& reduction, Bytes mine, std::byte* theirs, bool from_lower) {
  if (mine.empty()) return;
  const uint64_t count = mine.size() / reduction.element_bytes();
  if (from_lower) {
    reduction(theirs, mine.data(), count);
  } else if (reduction.kernel) {
    reduction.combine(mine.data(), theirs, mine.data(), count);
  } else if (reduction.op->commutative) {  // as the user says
    reduction(theirs, mine.data(), count);
  } else {
    reduction(mine.data(), theirs, count);
    Comm::copy(mine, ConstBytes(theirs, mine.size()));
  }
}

Task fold(Comm& c, Args a, std::byte* work) {
  const PowerOfTwo pairs(c.size());
  if (!pairs.in_pair(c.rank())) co_return;
  if (pairs.idle(c.rank())) {
    c.put(c.rank() + 1, a.buffer());
    co_await c.flushed();
    co_return;
  }
  c.announce(c.rank() - 1, Bytes(work, a.bytes));
  co_await c.received();
  combine_in_order(a.reduction, a.buffer(), work, true);
}

Task unfold(Comm& c, Args a) {
  const PowerOfTwo pairs(c.size());
  if (!pairs.in_pair(c.rank())) co_return;
  if (pairs.idle(c.rank()))
    c.announce(c.rank() + 1, a.buffer());
  else
    c.put(c.rank() - 1, a.buffer());
  co_await c.received();
  co_await c.flushed();
}

}  // namespace ibcoll::allreduce
