// SPDX-License-Identifier: BSD-3-Clause
// Reduce-scatter on one node: every rank writes its blocks into the node window, but for its own, and combines its
// block of all. Operands are combined as they come, or in rank order where the operation does not commute.
// Cost: p m written and p m read per rank for blocks of m bytes, a step for each area.
#include "runtime/collectives/framework/node_reduce.h"
#include "runtime/collectives/reduce_scatter/reduce_scatter.h"

namespace ibcoll::reduce_scatter::shm {
namespace {

// Blocks in lines, side by side, each in a cell as long as the longest one. What reduce_on_node() writes and awaits then.
void write(NodeWindow& w, const Args& a) {
  const uint64_t cell = longest_block(a, w.size());
  std::byte* const mine = w.own_area(w.rank(), cell * static_cast<uint64_t>(w.size()));
  for (int to = w.next(w.rank()); to != w.rank(); to = w.next(to))
    w.write(Bytes(mine + cell * static_cast<uint64_t>(to), a.send.size(to)), a.send[to], to);
}
Difference combine(NodeWindow& w, const Args& a) {
  const uint64_t cell = longest_block(a, w.size());
  combine_own_areas(w, a.reduction, a.buffer(), a.send[w.rank()].data(), cell * static_cast<uint64_t>(w.rank()),
                    cell * static_cast<uint64_t>(w.size()), w.size());
  return {};
}

OneStep one_step(const Args& a, const NodeWindow& w) {
  const uint64_t all = longest_block(a, w.size()) * static_cast<uint64_t>(w.size());
  if (a.in_place || w.size() < 2 || all == 0 || all > std::min<uint64_t>(NodeWindow::kInlineBytes, w.area_bytes()))
    return {};
  return {.kind = OneStep::Kind::kOwn, .end = w.size(), .bytes = all, .write = write, .finish = combine};
}

Task run(Comm& c, Args a) {
  const int p = c.size();
  auto* const starts = c.scratch_array<uint64_t>(static_cast<uint64_t>(p) + 1);
  if (!starts || longest_block(a, p) == 0) co_return;
  for (int i = 0; i < p; ++i) starts[i] = a.send.offset(i);
  starts[p] = starts[p - 1] + a.send.size(p - 1);
  const uint64_t element = a.reduction.element_bytes();
  const NodeOwners all{Segments{starts[p] / element, element, p, starts}, 0};
  co_await reduce_on_node(c, all, a.reduction, a.any_order(), ConstBytes(a.send.base, starts[p]), a.buffer());
}

const char* why_not(const Shape& s) {
  if (const char* const reason = applies_on_one_node(s)) return reason;
  const bool room = s.area_bytes >= s.element_bytes * static_cast<uint64_t>(s.p);
  return room ? nullptr : "the node window is too small for an element of each block (IBCOLL_SHM_SLOT_BYTES)";
}

double cost_us(const Shape& s, const CostModel& m) {
  Shape all = s;
  all.bytes = s.total;
  return reduce_on_node_us(all, m, s.p);
}

}  // namespace

std::span<const Algorithm> rows() {
  static constexpr auto kRows =
      two_rows({.collective = IBCOLL_REDUCE_SCATTER,
                .name = "shm",
                .about = "blocks in the node window, each rank combines its own; p m written and read",
                .run = run,
                .why_not = why_not,
                .cost_us = cost_us,
                .uses_window = true,
                .order = Order::kRanks,
                .one_step = one_step},
               IBCOLL_REDUCE_SCATTER_BLOCK);
  return kRows;
}

}  // namespace ibcoll::reduce_scatter::shm
