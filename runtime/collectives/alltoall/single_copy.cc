// SPDX-License-Identifier: BSD-3-Clause
// Alltoall on one node: ranks publish where their send buffer is and read their blocks from each other's memory with
// one copy; a rank publishes the second step when it has read all.
// Cost: 2 steps, p - 1 reads.
#include "runtime/collectives/framework/single_copy.h"
#include "runtime/collectives/framework/cost_patterns.h"

namespace ibcoll::alltoall::single_copy {
namespace {

Task run(Comm& c, Args a) {
  NodeWindow& w = c.node();
  co_await c.next_step(kAddressBytes);
  publish_address(c, ConstBytes(a.send.base, a.recv.bytes * static_cast<uint64_t>(c.size())));
  c.publish();
  c.copy(a.recv[c.rank()], a.send[c.rank()]);
  for (int i = 1; i < c.size(); ++i) {
    const int from = c.peer(-i);
    co_await c.published(from);
    const uint64_t address = published_address(w, from) + a.recv.bytes * static_cast<uint64_t>(c.rank());
    if (!co_await c.read(from, address, a.recv[from])) co_return;
  }
  co_await c.next_step(0);
  c.publish();
  co_await all_have_read(c);
}

double cost_us(const Shape& s, const CostModel& m) {
  const double block = static_cast<double>(s.bytes);
  return 2 * m.step_us(s.p) + m.own_copies_us(block) + m.reads_us(s.p - 1, block * (s.p - 1));
}

}  // namespace

std::span<const Algorithm> rows() {
  static constexpr Algorithm kRows[] = {{.collective = IBCOLL_ALLTOALL,
                                         .name = "single_copy",
                                         .about = "all read each other's memory; 2 steps, one copy",
                                         .run = run,
                                         .why_not = applies_with_single_copy,
                                         .cost_us = cost_us,
                                         .late_us = cost_of_late_us<cost_us>,
                                         .uses_window = true}};
  return kRows;
}

}  // namespace ibcoll::alltoall::single_copy
