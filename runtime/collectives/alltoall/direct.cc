// SPDX-License-Identifier: BSD-3-Clause
// Alltoall(v), Direct: at step i, rank r sends to r + i and receives from r - i. It does not use arrivals: it waits
// until one peer is ready before it sends to the next one.
// Source: the base algorithm of Qian, Afsahi, "Process arrival pattern aware alltoall and allgather on InfiniBand
// clusters", section 4.2. Messages: p - 1 per rank. Cost: alpha + (p - 1) m beta.
#include "runtime/collectives/framework/cost_patterns.h"

namespace ibcoll::alltoall::direct {
namespace {

Task run(Comm& c, Args a) {
  for (int i = 1; i < c.size(); ++i) c.announce(c.peer(-i), a.recv[c.peer(-i)]);
  c.copy_when_idle(a.recv[c.rank()], a.send[c.rank()]);
  for (int i = 1; i < c.size(); ++i) {
    const int to = c.peer(i);
    co_await c.ready(to, a.send.size(to));
    c.put(to, a.send[to]);
  }
  co_await c.received();
  co_await c.flushed();
}

// PAP_Direct does the same and does not wait for peers in order.
double cost_us(const Shape& s, const CostModel& m) { return cost::kSecondChoice * direct_us(s, m); }

}  // namespace

std::span<const Algorithm> rows() {
  static constexpr auto kRows = two_rows({.collective = IBCOLL_ALLTOALL,
                                          .name = "direct",
                                          .about = "Qian, Afsahi, base algorithm; alpha + (p-1) m beta",
                                          .run = run,
                                          .cost_us = cost_us,
                                          .as_exchange = AsExchange::kOfAll},
                                         IBCOLL_ALLTOALLV);
  return kRows;
}

}  // namespace ibcoll::alltoall::direct
