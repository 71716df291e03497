// SPDX-License-Identifier: BSD-3-Clause
// Scatter(v), linear: the root sends each rank its block, to those that have arrived first.
// Source: Thakur, Gropp, scatter for long messages. Messages: p - 1, all from the root. Cost: (p - 1) alpha + beta sum
// of m_i.
#include "runtime/collectives/gather/costs.h"

namespace ibcoll::scatter::linear {
namespace {

Task run(Comm& c, Args a) {
  if (c.rank() != a.root) {
    c.announce(a.root, a.buffer());
    co_await c.received();
    co_return;
  }
  if (!a.in_place) c.copy_when_idle(a.buffer(), a.send[c.rank()]);
  for (int i = 1; i < c.size(); ++i) c.serve(c.peer(i), a.send.size(c.peer(i)));
  for (int i = 1; i < c.size(); ++i) {
    const int to = co_await c.next_arrival();
    c.put(to, a.send[to]);
  }
  co_await c.flushed();
}

}  // namespace

std::span<const Algorithm> rows() {
  static constexpr auto kRows =
      two_rows({.collective = IBCOLL_SCATTER,
                .name = "linear",
                .about = "Thakur, Gropp; the root to all, in arrival order; (p-1) alpha + beta sum m_i",
                .run = run,
                .cost_us = gather::linear_us,
                .late_us = gather::late_linear_scatter_us,
                .as_exchange = AsExchange::kOfAll},
               IBCOLL_SCATTERV);
  return kRows;
}

}  // namespace ibcoll::scatter::linear
