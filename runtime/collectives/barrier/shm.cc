// SPDX-License-Identifier: BSD-3-Clause
// Barrier on one node: every rank sets its own flag and looks at all others.
// Rounds: 1 step of the node window, no messages.
#include "runtime/collectives/framework/algorithm.h"

namespace ibcoll::barrier::shm {
namespace {

OneStep one_step(const Args&, const NodeWindow& w) { return {.kind = OneStep::Kind::kAll, .end = w.size()}; }

Task run(Comm& c, Args a) { return run_one_step(c, a, one_step(a, c.node())); }

double cost_us(const Shape& s, const CostModel& m) { return m.step_us(s.p); }

}  // namespace

std::span<const Algorithm> rows() {
  static constexpr Algorithm kRows[] = {{.collective = IBCOLL_BARRIER,
                                         .name = "shm",
                                         .about = "flags in the node window; 1 step",
                                         .run = run,
                                         .why_not = applies_on_one_node,
                                         .cost_us = cost_us,
                                         .uses_window = true,
                                         .one_step = one_step}};
  return kRows;
}

}  // namespace ibcoll::barrier::shm
