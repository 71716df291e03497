// SPDX-License-Identifier: BSD-3-Clause
// Reduce, binomial tree: with v = (rank - root) mod p, rank v combines what comes from v + 2^k for every 2^k below its
// lowest set bit, in the order in which it comes, and sends the result to v without that bit. An operation that does
// not commute has a tree with rank 0 on top, whose subtrees are ranks in a row; rank 0 sends the result to the root.
// Source: Thakur, Gropp, reduce. Rounds: ceil(lg p) (+ 1). Cost: ceil(lg p) (alpha + n beta + n gamma).
#include <bit>

#include "runtime/collectives/framework/cost_patterns.h"
#include "runtime/collectives/framework/halving.h"
#include "runtime/collectives/reduce/reduce.h"

namespace ibcoll::reduce::binomial {

Task among(Comm& c, Args a, std::byte* work) {
  const int p = c.size();
  const int top = a.reduction.op->commutative ? a.root : 0;
  const int v = (c.rank() - top + p) % p;
  int bit = 1, children = 0;
  for (; bit < p && !(v & bit); bit *= 2) {
    if (v + bit >= p) continue;
    const int child = (v + bit + top) % p;
    c.announce(child, Bytes(work + a.bytes * static_cast<uint64_t>(children), a.bytes));
    if (a.any_order()) c.watch(child);
    ++children;
  }
  const Bytes sum = a.buffer();
  const std::byte* partial = a.send.base;
  for (int i = 0; i < children; ++i) {
    int k = i;
    if (a.any_order()) {
      const int child = co_await c.next_landing();
      k = std::countr_zero(static_cast<unsigned>((child - top + p) % p - v));
    } else {
      co_await c.received_from((v + (1 << i) + top) % p);
    }
    std::byte* const theirs = work + a.bytes * static_cast<uint64_t>(k);
    if (partial == sum.data())
      combine_in_order(a.reduction, sum, theirs, false);
    else
      a.reduction.combine(partial, theirs, sum.data(), a.count);
    partial = sum.data();
  }
  if (v != 0) c.put((v - bit + top) % p, ConstBytes(partial, a.bytes));
  if (top != a.root && v == 0) c.put(a.root, ConstBytes(partial, a.bytes));
  co_await c.flushed();
  if (top != a.root && c.rank() == a.root) c.announce(top, sum);
  co_await c.received();
}

int slots(int p) { return std::max(ceil_log2(p), 1); }

double cost_us(const Shape& s, const CostModel& m) {
  const double n = static_cast<double>(s.bytes);
  return (ceil_log2(s.p) + (s.commutative ? 0 : 1)) * (m.message_us(n) + combine_landed_us(m, n));
}

// The ranks above a late one wait: half of the levels, in the mean.
double late_us(const Shape& s, const CostModel& m) {
  const double n = static_cast<double>(s.bytes);
  return cost_us(s, model_of_late(m)) / 2 + (n > m.eager_bytes ? m.beta_us * n : 0);
}

std::span<const Algorithm> rows() {
  static constexpr Algorithm kRows[] = {{.collective = IBCOLL_REDUCE,
                                         .name = "binomial",
                                         .about = "Thakur, Gropp; ceil(lg p) (alpha + n beta + n gamma)",
                                         .run = in_pieces<among, slots>,
                                         .cost_us = cost_us,
                                         .late_us = late_us,
                                         .as_exchange = AsExchange::kOfTwo}};
  return kRows;
}

}  // namespace ibcoll::reduce::binomial
