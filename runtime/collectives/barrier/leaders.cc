// SPDX-License-Identifier: BSD-3-Clause
// Barrier in three phases: the ranks of a node set flags in its window, the leaders of the nodes run a dissemination
// barrier, and each sets its flag when that has ended.
// Source: phase 2 is barrier/dissemination. Rounds: ceil(lg N) for N nodes. Cost: ceil(lg N) alpha and 2 steps of the
// window.
#include "runtime/collectives/barrier/barrier.h"
#include "runtime/collectives/framework/cost_patterns.h"
#include "runtime/collectives/framework/node_rows.h"

namespace ibcoll::barrier::leaders {
namespace {

Task run(Comm& c, Args a) {
  co_await c.next_step(0);
  if (c.node().rank() != 0) {
    c.publish();
    co_await c.published(0);
    co_return;
  }
  c.publish_call();
  co_await c.all_published();
  co_await dissemination::run(c.leaders(), a);
  c.publish();
}

double cost_us(const Shape& s, const CostModel& m) {
  return 2 * m.step_us(s.most_local) + ceil_log2(s.nodes) * model_of_leaders(s, m).message_us(1);
}

const char* why_not(const Shape& s) { return applies_to_nodes_of_ranks(s, 1); }

}  // namespace

std::span<const Algorithm> rows() {
  static constexpr Algorithm kRows[] = {
      {.collective = IBCOLL_BARRIER,
       .name = "leaders",
       .about = "node window, dissemination of leaders, node window; ceil(lg N) alpha",
       .run = run,
       .why_not = why_not,
       .cost_us = cost_us,
       .uses_window = true}};
  return kRows;
}

}  // namespace ibcoll::barrier::leaders
