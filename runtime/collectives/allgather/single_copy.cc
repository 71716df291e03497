// SPDX-License-Identifier: BSD-3-Clause
// Allgather(v) on one node: ranks publish where their block is and read those of all others with one copy, the nearest
// ones first; a rank publishes the second step when it has read all.
// Cost: 2 steps, p - 1 reads. The rank with the smallest block reads most.
#include "runtime/collectives/framework/single_copy.h"
#include "runtime/collectives/framework/cost_patterns.h"

namespace ibcoll::allgather::single_copy {
namespace {

Task run(Comm& c, Args a) {
  NodeWindow& w = c.node();
  const ConstBytes own = a.own(c.rank());
  co_await c.next_step(kAddressBytes);
  publish_address(c, own);
  c.publish();
  c.copy(a.recv[c.rank()], own);
  for (int i = 1; i < c.size(); ++i) {
    const int from = c.peer(-i);
    co_await c.published(from);
    if (!co_await c.read(from, published_address(w, from), a.recv[from])) co_return;
  }
  co_await c.next_step(0);
  c.publish();
  co_await all_have_read(c);
}

double cost_us(const Shape& s, const CostModel& m) {
  const double total = static_cast<double>(s.total);
  const double smallest = (total - static_cast<double>(s.bytes)) / (s.p - 1);  // or smaller
  return 2 * m.step_us(s.p) + m.own_copies_us(smallest) + m.reads_us(s.p - 1, total - smallest);
}

}  // namespace

std::span<const Algorithm> rows() {
  static constexpr auto kRows = two_rows({.collective = IBCOLL_ALLGATHER,
                                          .name = "single_copy",
                                          .about = "all read each other's memory; 2 steps, one copy",
                                          .run = run,
                                          .why_not = applies_with_single_copy,
                                          .cost_us = cost_us,
                                          .late_us = cost_of_late_us<cost_us>,
                                          .uses_window = true},
                                         IBCOLL_ALLGATHERV);
  return kRows;
}

}  // namespace ibcoll::allgather::single_copy
