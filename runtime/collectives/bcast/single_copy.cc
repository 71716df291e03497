// SPDX-License-Identifier: BSD-3-Clause
// Broadcast on one node: the root publishes where its buffer is, all others read it with one copy; the root stays until
// they have. Of two ranks each copies one half (framework/pair.h).
// Cost: 2 steps, one read of n bytes per rank; of two ranks, of n / 2 bytes.
// All pin the same pages; how much that hinders them where each has a core
// is not measured, so the model lets them read one after the other.
#include "runtime/collectives/framework/single_copy.h"
#include "runtime/collectives/framework/pair.h"

namespace ibcoll::bcast::single_copy {
namespace {

Task run(Comm& c, Args a) {
  if (c.size() == 2) {
    if (c.rank() == a.root)
      co_await send_in_pair(c, a.buffer(), half_of(a.buffer()));
    else
      co_await receive_in_pair(c, a.buffer(), half_of(a.buffer()));
    co_return;
  }
  NodeWindow& w = c.node();
  co_await c.next_step(kAddressBytes);
  if (c.rank() == a.root) publish_address(c, a.buffer());
  c.publish();
  if (c.rank() != a.root) {
    co_await c.published(a.root);
    if (!co_await c.read(a.root, published_address(w, a.root), a.buffer())) co_return;
  }
  co_await c.next_step(0);
  c.publish();
  if (c.rank() == a.root) co_await all_have_read(c);
}

double cost_us(const Shape& s, const CostModel& m) {
  const double n = static_cast<double>(s.bytes);
  if (s.p == 2) return halves_us(n, m);
  return 2 * m.step_us(s.p) + (s.p - 1) * (m.read_us + m.read_us_per_byte * n);
}

// All wait for a late root. Another rank reads alone.
double late_us(const Shape& s, const CostModel& m) {
  if (s.p == 2) return cost_us(s, m);
  const double alone = m.step_us(s.p) + m.read_us + m.read_us_per_byte * static_cast<double>(s.bytes);
  return (cost_us(s, m) + (s.p - 1) * alone) / s.p;
}

}  // namespace

std::span<const Algorithm> rows() {
  static constexpr Algorithm kRows[] = {{.collective = IBCOLL_BCAST,
                                         .name = "single_copy",
                                         .about = "all read the root's memory; 2 steps, one copy",
                                         .run = run,
                                         .why_not = applies_with_single_copy,
                                         .cost_us = cost_us,
                                         .late_us = late_us,
                                         .uses_window = true}};
  return kRows;
}

}  // namespace ibcoll::bcast::single_copy
