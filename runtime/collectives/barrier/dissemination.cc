// SPDX-License-Identifier: BSD-3-Clause
// Barrier, dissemination: in round k each rank sends a token to rank + 2^k and waits for that of rank - 2^k.
// Source: Hensgen, Finkel, Manber, "Two Algorithms for Barrier Synchronization", 1988.
// Rounds: ceil(lg p). Cost: ceil(lg p) alpha.
#include "runtime/collectives/barrier/barrier.h"
#include "runtime/collectives/framework/algorithm.h"

namespace ibcoll::barrier::dissemination {

Task run(Comm& c, Args) {
  std::byte* const token = c.scratch(2);
  if (!token) co_return;
  token[0] = token[1] = std::byte{0};
  for (int distance = 1; distance < c.size(); distance *= 2) {
    const int from = c.peer(-distance);
    c.announce(from, Bytes(token, 1));
    c.put(c.peer(distance), ConstBytes(token + 1, 1));
    co_await c.received();
  }
  co_await c.flushed();
}

namespace {

double cost_us(const Shape& s, const CostModel& m) { return ceil_log2(s.p) * m.message_us(1); }

}  // namespace

std::span<const Algorithm> rows() {
  static constexpr Algorithm kRows[] = {{.collective = IBCOLL_BARRIER,
                                         .name = "dissemination",
                                         .about = "Hensgen, Finkel, Manber 1988; ceil(lg p) alpha",
                                         .run = run,
                                         .cost_us = cost_us,
                                         .as_exchange = AsExchange::kOfTwo}};
  return kRows;
}

}  // namespace ibcoll::barrier::dissemination
