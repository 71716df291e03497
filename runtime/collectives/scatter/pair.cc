// SPDX-License-Identifier: BSD-3-Clause
// Scatterv of two ranks on one node, which both know the size of the block: one of up to threshold bytes goes through
// the node window, as in shm_tree; a longer one is read with one copy, while the root copies its own block.
// Cost: 1 step, 2 copies of m bytes; or 2 steps, a read.
#include "runtime/collectives/framework/pair.h"

#include "runtime/collectives/gather/node_stage.h"
#include "runtime/collectives/scatter/one_step.h"

namespace ibcoll::scatter::pair {
namespace {

Task run(Comm& c, Args a) {
  const int other = 1 - a.root;
  if (const OneStep step = one_step(a, c.node())) {
    co_await run_one_step(c, a, step);
  } else if (c.rank() == a.root) {
    if (!a.in_place) c.copy_when_idle(a.buffer(), a.send[a.root]);
    co_await send_in_pair(c, a.send[other], a.send.size(other), other);
  } else {
    co_await receive_in_pair(c, a.buffer(), a.bytes, other);
  }
}

uint64_t choose_threshold(const Shape&, const CostModel& m) {
  return std::clamp(m.read_from(2), static_cast<uint64_t>(cost::kLeastThreshold),
                    static_cast<uint64_t>(cost::kMostThreshold));
}

double cost_us(const Shape& s, const CostModel& m) {
  const auto block = static_cast<double>(gather::block_of(s));
  return gather::goes_straight(s) ? 2 * m.step_us(2) + m.reads_us(1, block) : gather::shm_tree_us(s, m, 1, true);
}

double late_us(const Shape& s, const CostModel& m) {
  const double whole = cost_us(s, m);
  return gather::goes_straight(s) ? whole : gather::late_node_scatter_us(s, m, whole, 0);
}

}  // namespace

std::span<const Algorithm> rows() {
  static constexpr Algorithm kRows[] = {{.collective = IBCOLL_SCATTERV,
                                         .name = "pair",
                                         .about = "two ranks: a short block through the window, a long one is read",
                                         .parameter = gather::kThreshold,
                                         .run = run,
                                         .why_not = applies_to_pairs,
                                         .choose = choose_threshold,
                                         .cost_us = cost_us,
                                         .late_us = late_us,
                                         .uses_window = true,
                                         .one_step = one_step}};
  return kRows;
}

}  // namespace ibcoll::scatter::pair
