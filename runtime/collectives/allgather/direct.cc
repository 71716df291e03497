// SPDX-License-Identifier: BSD-3-Clause
// Allgather(v), Direct: at step i, rank r sends its block to r + i and receives that of r - i. It does not use
// arrivals: it waits until one peer is ready before it sends to the next one.
// Source: the base algorithm of Qian, Afsahi, "Process arrival pattern aware alltoall and allgather on InfiniBand
// clusters".
// Messages: p - 1 per rank. Cost: alpha + (p - 1) m beta.
#include "runtime/collectives/framework/cost_patterns.h"

namespace ibcoll::allgather::direct {
namespace {

Task run(Comm& c, Args a) {
  const ConstBytes own = a.own(c.rank());
  for (int i = 1; i < c.size(); ++i) c.announce(c.peer(-i), a.recv[c.peer(-i)]);
  c.copy_when_idle(a.recv[c.rank()], own);
  for (int i = 1; i < c.size(); ++i) {
    co_await c.ready(c.peer(i), own.size());
    c.put(c.peer(i), own);
  }
  co_await c.received();
  co_await c.flushed();
}

// PAP_Direct does the same and does not wait for peers in order.
double cost_us(const Shape& s, const CostModel& m) { return cost::kSecondChoice * direct_us(s, m); }

}  // namespace

std::span<const Algorithm> rows() {
  static constexpr auto kRows = two_rows({.collective = IBCOLL_ALLGATHER,
                                          .name = "direct",
                                          .about = "Qian, Afsahi, base algorithm; alpha + (p-1) m beta",
                                          .run = run,
                                          .cost_us = cost_us,
                                          .as_exchange = AsExchange::kOfAll},
                                         IBCOLL_ALLGATHERV);
  return kRows;
}

}  // namespace ibcoll::allgather::direct
