// SPDX-License-Identifier: BSD-3-Clause
// Alltoall(v), PAP_Direct: a rank sends to the ranks that have arrived, in arrival order. The advertisement of the
// receive buffer (zero-copy), or data that has landed (copy-based), is the arrival notice; there is no other control
// message.
// Source: Qian, Afsahi, "Process arrival pattern aware alltoall and allgather on InfiniBand clusters", section 4.2,
// figure 5. Messages: p - 1 per rank. Cost: alpha + (p - 1) m beta.
#include "runtime/collectives/framework/cost_patterns.h"

namespace ibcoll::alltoall::pap_direct {
namespace {

Task run(Comm& c, Args a) {
  for (int i = 1; i < c.size(); ++i) c.announce(c.peer(i), a.recv[c.peer(i)]);  // the arrival notice
  c.copy_when_idle(a.recv[c.rank()], a.send[c.rank()]);
  for (int i = 1; i < c.size(); ++i) c.serve(c.peer(i), a.send.size(c.peer(i)));
  for (int i = 1; i < c.size(); ++i) {
    const int to = co_await c.next_arrival();
    c.put(to, a.send[to]);
  }
  co_await c.received();
  co_await c.flushed();
}

}  // namespace

std::span<const Algorithm> rows() {
  static constexpr auto kRows =
      two_rows({.collective = IBCOLL_ALLTOALL,
                .name = "pap_direct",
                .about = "Qian, Afsahi, PAP_Direct; serves peers as they arrive; alpha + (p-1) m beta",
                .run = run,
                .cost_us = direct_us,
                .late_us = late_direct_us,
                .as_exchange = AsExchange::kOfAll},
               IBCOLL_ALLTOALLV);
  return kRows;
}

}  // namespace ibcoll::alltoall::pap_direct
