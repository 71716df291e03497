// SPDX-License-Identifier: BSD-3-Clause
// Broadcast, binomial tree: with v = (rank - root) mod p, rank v receives from v without its lowest set bit, then sends
// to v + 2^k for every 2^k below that bit, largest first.
// Source: Thakur, Gropp, "Improving the Performance of Collective Operations in MPICH on switched networks", broadcast
// for short messages. Rounds: ceil(lg p). Cost: ceil(lg p) (alpha + n beta).
#include "runtime/collectives/bcast/trees.h"

namespace ibcoll::bcast::binomial {
namespace {

Task run(Comm& c, Args a) {
  const int p = c.size();
  const int v = (c.rank() - a.root + p) % p;
  int bit = 1;
  while (bit < p && !(v & bit)) bit *= 2;  // the lowest set bit of v; the root: the first power of two >= p
  if (v != 0) {
    const int parent = (v - bit + a.root) % p;
    c.announce(parent, a.buffer());
    co_await c.received();
  }
  for (bit /= 2; bit > 0; bit /= 2)
    if (v + bit < p) c.put((v + bit + a.root) % p, a.buffer());
  co_await c.flushed();
}

double cost_us(const Shape& s, const CostModel& m) {
  const auto n = static_cast<double>(s.bytes);
  return tree_us(KnomialTree::shape(s.p, 2), m, n, n);
}

double late_us(const Shape& s, const CostModel& m) {
  const auto n = static_cast<double>(s.bytes);
  return late_tree_us(KnomialTree::height(s.p, 2), 1, m, n, n);
}

}  // namespace

std::span<const Algorithm> rows() {
  static constexpr Algorithm kRows[] = {{.collective = IBCOLL_BCAST,
                                         .name = "binomial",
                                         .about = "Thakur, Gropp; ceil(lg p) (alpha + n beta)",
                                         .run = run,
                                         .cost_us = cost_us,
                                         .late_us = late_us,
                                         .as_exchange = AsExchange::kOfTwo}};
  return kRows;
}

}  // namespace ibcoll::bcast::binomial
