// SPDX-License-Identifier: BSD-3-Clause
// Broadcast, k-nomial tree: the binomial tree with r - 1 children per level instead of one. Fewer rounds, more messages
// of one rank.
// Source: as Thakur, Gropp, broadcast for short messages, to any base r. Rounds: ceil(log_r p). Cost: ceil(log_r p)
// (alpha + (r - 1) n beta).
#include "runtime/collectives/bcast/trees.h"

namespace ibcoll::bcast::knomial {
namespace {

Task run(Comm& c, Args a) {
  const int p = c.size();
  const KnomialTree tree(p, (c.rank() - a.root + p) % p, static_cast<int>(a.parameter));
  if (c.rank() != a.root) {
    const int parent = (tree.parent() + a.root) % p;
    c.announce(parent, a.buffer());
    co_await c.received();
  }
  for (int slot = 0; slot < tree.slots(); ++slot)
    if (const int64_t child = tree.child(slot); child < p) c.put(static_cast<int>((child + a.root) % p), a.buffer());
  co_await c.flushed();
}

double cost_us(const Shape& s, const CostModel& m) {
  return knomial_us(s.p, static_cast<int>(s.parameter), m, static_cast<double>(s.bytes));
}

double late_us(const Shape& s, const CostModel& m) {
  const auto n = static_cast<double>(s.bytes);
  const auto radix = static_cast<int>(s.parameter);
  return late_tree_us(KnomialTree::height(s.p, radix), std::clamp(s.p - 1, 1, radix - 1), m, n, n);
}

uint64_t choose(const Shape& s, const CostModel& m) { return cheapest_of<cost_us>(s, m, {4, 3, 8, 16}); }

}  // namespace

std::span<const Algorithm> rows() {
  static constexpr Algorithm kRows[] = {{.collective = IBCOLL_BCAST,
                                         .name = "knomial",
                                         .about = "Thakur, Gropp, to base r; ceil(log_r p) (alpha + (r-1) n beta)",
                                         .parameter = {Parameter::Unit::kCount, "radix", 2, 1024},
                                         .run = run,
                                         .choose = choose,
                                         .cost_us = cost_us,
                                         .late_us = late_us,
                                         .as_exchange = AsExchange::kOfRadix}};
  return kRows;
}

}  // namespace ibcoll::bcast::knomial
