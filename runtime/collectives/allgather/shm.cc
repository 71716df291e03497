// SPDX-License-Identifier: BSD-3-Clause
// Allgather(v) on one node: every rank writes its block into the node window and copies out those of all others, the
// nearest ones first. Blocks larger than an area take several steps.
// Cost: ceil(max m_i / area) steps; every block is written once and read p - 1 times.
#include <algorithm>

#include "runtime/collectives/framework/cost_patterns.h"

namespace ibcoll::allgather::shm {
namespace {

// Blocks in lines are short enough to wait for all of them.
void write(NodeWindow& w, const Args& a) {
  const ConstBytes own = a.own(w.rank());
  w.write(Bytes(w.area(w.rank(), own.size()), own.size()), own);
}
Difference take(NodeWindow& w, const Args& a) {
  for (int i = 0; i < w.size(); ++i) {
    const Bytes block = a.recv[i];
    Comm::copy(block, i == w.rank() ? a.own(i) : ConstBytes(w.area(i, block.size()), block.size()));
  }
  return {};
}

OneStep one_step(const Args& a, const NodeWindow& w) {
  const uint64_t most = a.longest(w.size());
  bool any_empty = false;  // other ranks do not wait for its rank
  for (int i = 0; i < w.size(); ++i) any_empty = any_empty || a.recv.size(i) == 0;
  if (any_empty || most > NodeWindow::kInlineBytes) return {};
  return {.kind = OneStep::Kind::kAll, .end = w.size(), .bytes = most, .write = write, .finish = take};
}

Task run(Comm& c, Args a) {
  NodeWindow& w = c.node();
  const ConstBytes own = a.own(c.rank());
  const uint64_t most = a.longest(c.size());
  const auto p = static_cast<uint64_t>(c.size());
  const uint64_t node_total = most * p * p;  // all receive buffers
  for (uint64_t at = 0; at < most; at += w.area_bytes()) {
    co_await c.next_step(std::min(most - at, w.area_bytes()));
    const ConstBytes mine = part(own, at, w.area_bytes());
    w.write(Bytes(w.area(c.rank(), mine.size()), mine.size()), mine);
    c.publish();
    if (most - at <= w.area_bytes()) c.copy(a.recv[c.rank()], own);  // nobody waits for this rank any more
    for (int i = 1; i < c.size(); ++i) {
      const int from = c.peer(-i);
      const Bytes theirs = part(a.recv[from], at, w.area_bytes());
      if (theirs.empty()) continue;
      co_await c.published(from);
      c.copy_within(node_total, theirs, ConstBytes(w.area(from, theirs.size()), theirs.size()));
    }
  }
}

double cost_us(const Shape& s, const CostModel& m) {
  const double steps = 1 + static_cast<double>(s.bytes) / static_cast<double>(s.area_bytes);
  const double block = static_cast<double>(s.bytes);
  const double total = static_cast<double>(s.total);
  const double touched = touched_areas(s);
  return steps * m.step_us(s.p) + m.copies_us(block, touched) + m.own_copies_us(block) +
         m.shared_copies_us(total - block, touched);
}

}  // namespace

std::span<const Algorithm> rows() {
  static constexpr auto kRows = two_rows({.collective = IBCOLL_ALLGATHER,
                                          .name = "shm",
                                          .about = "blocks through the node window; ceil(max m_i / area) steps",
                                          .run = run,
                                          .why_not = applies_on_one_node,
                                          .cost_us = cost_us,
                                          .late_us = cost_of_late_us<cost_us>,
                                          .uses_window = true,
                                          .one_step = one_step},
                                         IBCOLL_ALLGATHERV);
  return kRows;
}

}  // namespace ibcoll::allgather::shm
