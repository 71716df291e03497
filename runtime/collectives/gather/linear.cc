// SPDX-License-Identifier: BSD-3-Clause
// Gather(v), linear: every rank sends its block to the root, which takes them as they come.
// Source: Thakur, Gropp, gather for long messages. Messages: p - 1, all to the root. Cost: (p - 1) alpha + beta sum of
// m_i.
#include "runtime/collectives/framework/cost_patterns.h"
#include "runtime/collectives/gather/costs.h"

namespace ibcoll::gather::linear {
namespace {

Task run(Comm& c, Args a) {
  if (c.rank() != a.root) {
    const ConstBytes own = a.own(c.rank());
    c.serve(a.root, own.size());
    const int root = co_await c.next_arrival();  // if it is late, the block goes ahead
    c.put(root, own);
    co_await c.flushed();
    co_return;
  }
  for (int i = 1; i < c.size(); ++i) c.announce(c.peer(i), a.recv[c.peer(i)]);
  if (!a.in_place) c.copy_when_idle(a.recv[c.rank()], a.own(c.rank()));
  co_await c.received();
}

}  // namespace

std::span<const Algorithm> rows() {
  static constexpr auto kRows = two_rows({.collective = IBCOLL_GATHER,
                                          .name = "linear",
                                          .about = "Thakur, Gropp; all to the root; (p-1) alpha + beta sum m_i",
                                          .run = run,
                                          .cost_us = linear_us,
                                          .late_us = late_linear_gather_us,
                                          .as_exchange = AsExchange::kOfAll},
                                         IBCOLL_GATHERV);
  return kRows;
}

}  // namespace ibcoll::gather::linear
