// SPDX-License-Identifier: BSD-3-Clause
// Alltoall on one node, through the node window: every rank writes all its blocks side by side into its area, then
// picks its own block from every other rank's. What does not fit takes several steps.
// Cost: 1 + p m / area steps, 2 copies.
#include <algorithm>

#include "runtime/collectives/framework/cost_patterns.h"

namespace ibcoll::alltoall::shm {
namespace {

// Blocks in lines are short enough to wait for all of them.
void write(NodeWindow& w, const Args& a) {
  const uint64_t block = a.recv.bytes, all = block * static_cast<uint64_t>(w.size());
  std::byte* const mine = w.area(w.rank(), all);
  for (int to = w.next(w.rank()); to != w.rank(); to = w.next(to))
    w.write(Bytes(mine + block * static_cast<uint64_t>(to), block), a.send[to], to);
}
Difference take(NodeWindow& w, const Args& a) {
  const uint64_t block = a.recv.bytes, all = block * static_cast<uint64_t>(w.size());
  const uint64_t mine = block * static_cast<uint64_t>(w.rank());
  for (int from = 0; from < w.size(); ++from)
    Comm::copy(a.recv[from], from == w.rank() ? a.send[from] : ConstBytes(w.area(from, all) + mine, block));
  return {};
}

// Returns how many bytes of each block move in a step.
uint64_t most_bytes(const NodeWindow& w) { return w.area_bytes() / static_cast<uint64_t>(w.size()) / 8 * 8; }

OneStep one_step(const Args& a, const NodeWindow& w) {
  const uint64_t all = a.recv.bytes * static_cast<uint64_t>(w.size());
  if (a.in_place || all == 0 || a.recv.bytes > most_bytes(w) || all > NodeWindow::kInlineBytes) return {};
  return {.kind = OneStep::Kind::kAll, .end = w.size(), .bytes = all, .write = write, .finish = take};
}

Task run(Comm& c, Args a) {
  NodeWindow& w = c.node();
  const auto p = static_cast<uint64_t>(c.size());
  const uint64_t cell = std::min(most_bytes(w), a.recv.bytes);
  const uint64_t node_total = a.recv.bytes * p * p;  // all receive buffers
  for (uint64_t at = 0; at < a.recv.bytes; at += cell) {
    co_await c.next_step(cell * p);
    std::byte* const mine = w.area(c.rank(), cell * p);
    for (int i = 1; i < c.size(); ++i) {
      const int to = c.peer(i);
      const ConstBytes block = part(a.send[to], at, cell);
      w.write(Bytes(mine + cell * static_cast<uint64_t>(to), block.size()), block, to);
    }
    c.publish();
    for (int i = 1; i < c.size(); ++i) {
      const int from = c.peer(-i);
      const Bytes block = part(a.recv[from], at, cell);
      co_await c.published(from);
      c.copy_within(node_total, block,
                    ConstBytes(w.area(from, cell * p) + cell * static_cast<uint64_t>(c.rank()), block.size()));
    }
  }
  c.copy(a.recv[c.rank()], a.send[c.rank()]);
}

const char* why_not(const Shape& s) {
  if (const char* const reason = applies_on_one_node(s)) return reason;
  return s.area_bytes / static_cast<uint64_t>(s.p) >= 8 ? nullptr
                                                        : "the node window has less than 8 bytes per pair of ranks";
}

double cost_us(const Shape& s, const CostModel& m) {
  const double block = static_cast<double>(s.bytes);
  const double cell = std::min(block, static_cast<double>(s.area_bytes) / s.p);
  const double touched = NodeWindow::kBanks * m.sharing * 2 * (s.p - 1) * cell;
  return (1 + block * s.p / static_cast<double>(s.area_bytes)) * m.step_us(s.p) + m.own_copies_us(block) +
         m.copies_us(2 * block * (s.p - 1), touched) + m.beyond_caches_us(s.p, block);
}

}  // namespace

std::span<const Algorithm> rows() {
  static constexpr Algorithm kRows[] = {{.collective = IBCOLL_ALLTOALL,
                                         .name = "shm",
                                         .about = "through the node window; 1 + p m / area steps, two copies",
                                         .run = run,
                                         .why_not = why_not,
                                         .cost_us = cost_us,
                                         .late_us = cost_of_late_us<cost_us>,
                                         .uses_window = true,
                                         .one_step = one_step}};
  return kRows;
}

}  // namespace ibcoll::alltoall::shm
