// SPDX-License-Identifier: BSD-3-Clause
// Alltoall(v), pairwise exchange: p - 1 rounds; in round i, rank r exchanges with r xor i when p is a power of two,
// else sends to r + i and receives from r - i. One message is under way per rank and direction.
// Source: Thakur, Gropp, alltoall for long messages, and alltoallv. Cost: (p - 1) (alpha + m beta).
#include <bit>

#include "runtime/collectives/framework/algorithm.h"

namespace ibcoll::alltoall::pairwise {
namespace {

Task run(Comm& c, Args a) {
  const bool exchange = std::has_single_bit(static_cast<unsigned>(c.size()));
  c.copy_when_idle(a.recv[c.rank()], a.send[c.rank()]);
  for (int i = 1; i < c.size(); ++i) {
    const int to = exchange ? c.rank() ^ i : c.peer(i);
    const int from = exchange ? to : c.peer(-i);
    c.announce(from, a.recv[from]);
    c.put(to, a.send[to]);
    co_await c.received();
    co_await c.flushed();
  }
}

double cost_us(const Shape& s, const CostModel& m) { return (s.p - 1) * m.message_us(static_cast<double>(s.bytes)); }

}  // namespace

std::span<const Algorithm> rows() {
  static constexpr auto kRows = two_rows({.collective = IBCOLL_ALLTOALL,
                                          .name = "pairwise",
                                          .about = "Thakur, Gropp; (p-1) (alpha + m beta), one message at a time",
                                          .run = run,
                                          .cost_us = cost_us,
                                          .as_exchange = AsExchange::kOfTwo},
                                         IBCOLL_ALLTOALLV);
  return kRows;
}

}  // namespace ibcoll::alltoall::pairwise
