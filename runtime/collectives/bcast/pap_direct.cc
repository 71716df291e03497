// SPDX-License-Identifier: BSD-3-Clause
// Broadcast, PAP_Direct: the root sends to each rank itself, to those that have arrived first. No rank but the root waits
// for a late one, for none is between it and the root.
// Source: Qian, Afsahi, "Process arrival pattern aware alltoall and allgather on InfiniBand clusters", for one sender.
// Messages: p - 1, all from the root. Cost: alpha + (p - 1) n beta.
#include "runtime/collectives/bcast/trees.h"
#include "runtime/collectives/gather/costs.h"

namespace ibcoll::bcast::pap_direct {
namespace {

Task run(Comm& c, Args a) {
  if (c.rank() != a.root) {
    c.announce(a.root, a.buffer());
    co_await c.received();
    co_return;
  }
  for (int i = 1; i < c.size(); ++i) c.serve(c.peer(i), a.bytes);
  for (int i = 1; i < c.size(); ++i) {
    const int to = co_await c.next_arrival();
    c.put(to, a.buffer());
  }
  co_await c.flushed();
}

// The k-nomial tree of one level.
double cost_us(const Shape& s, const CostModel& m) {
  return knomial_us(s.p, std::max(s.p, 2), m, static_cast<double>(s.bytes));
}

// Through the memory of one node no rank waits for a late one either, and each byte is copied once.
const char* why_not(const Shape& s) { return s.one_node() ? "the ranks of the team share one node's memory" : nullptr; }

}  // namespace

std::span<const Algorithm> rows() {
  static constexpr Algorithm kRows[] = {{.collective = IBCOLL_BCAST,
                                         .name = "pap_direct",
                                         .about = "Qian, Afsahi, PAP_Direct; the root to all, in arrival order; "
                                                  "alpha + (p-1) n beta",
                                         .run = run,
                                         .why_not = why_not,
                                         .cost_us = cost_us,
                                         .late_us = gather::late_linear_scatter_us,
                                         .as_exchange = AsExchange::kOfAll}};
  return kRows;
}

}  // namespace ibcoll::bcast::pap_direct
