// SPDX-License-Identifier: BSD-3-Clause
// Allgather(v), ring: in round i each rank sends to rank + 1 the block that it received from rank - 1 in round i - 1.
// Source: Thakur, Gropp, allgather for long messages. Rounds: p - 1. Cost: (p - 1) alpha + (p - 1)/p n beta for n bytes
// in all. Empty blocks are neither sent nor received.
#include "runtime/collectives/framework/algorithm.h"

namespace ibcoll::allgather::ring {
namespace {

Task run(Comm& c, Args a) {
  const int right = c.peer(1), left = c.peer(-1);
  for (int i = 1; i < c.size(); ++i) c.announce(left, a.recv[c.peer(-i)]);
  c.copy_when_idle(a.recv[c.rank()], a.own(c.rank()));
  uint64_t coming = 0;
  for (int i = 1; i < c.size(); ++i) coming += a.recv.size(c.peer(-i));
  for (int i = 1; i < c.size(); ++i) {
    c.put(right, i == 1 ? a.own(c.rank()) : ConstBytes(a.recv[c.peer(1 - i)]));
    coming -= a.recv.size(c.peer(-i));
    co_await c.received_from(left, coming);
  }
  co_await c.flushed();
}

double cost_us(const Shape& s, const CostModel& m) { return (s.p - 1) * m.message_us(static_cast<double>(s.bytes)); }

}  // namespace

std::span<const Algorithm> rows() {
  static constexpr auto kRows = two_rows({.collective = IBCOLL_ALLGATHER,
                                          .name = "ring",
                                          .about = "Thakur, Gropp; (p-1) alpha + (p-1)/p n beta",
                                          .run = run,
                                          .cost_us = cost_us,
                                          .as_exchange = AsExchange::kOfTwo},
                                         IBCOLL_ALLGATHERV);
  return kRows;
}

}  // namespace ibcoll::allgather::ring
