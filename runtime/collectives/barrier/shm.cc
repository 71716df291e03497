// SPDX-License-Identifier: BSD-3-Clause
// Barrier on one node: every rank sets its own flag and looks at all others.
// Rounds: 1 step of the node window, no messages.
#include "runtime/collectives/framework/algorithm.h"

namespace ibcoll::barrier::shm {
namespace {

Task run(Comm& c, Args) {
  co_await c.next_step(0);
  c.publish();
  co_await c.all_published();
}

double cost_us(const Shape& s, const CostModel& m) { return m.step_us(s.p); }

}  // namespace

std::span<const Algorithm> rows() {
  static constexpr Algorithm kRows[] = {{.collective = IBCOLL_BARRIER,
                                         .name = "shm",
                                         .about = "flags in the node window; 1 step",
                                         .run = run,
                                         .why_not = applies_on_one_node,
                                         .cost_us = cost_us,
                                         .uses_window = true}};
  return kRows;
}

}  // namespace ibcoll::barrier::shm
