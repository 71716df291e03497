// SPDX-License-Identifier: BSD-3-Clause
// Broadcast on one node: the root writes the buffer into the node window piece by piece, all others copy it out; as
// many pieces are under way as the window has areas.
// Cost: (1 + p) copies of n bytes on the node, ceil(n / piece) steps.
#include <algorithm>

#include "runtime/collectives/framework/cost_patterns.h"

namespace ibcoll::bcast::shm {
namespace {

uint64_t piece_bytes(const NodeWindow& w, uint64_t bytes) {
  return std::min(bytes, window_piece(bytes, w.area_bytes(), w.crowded()));
}

void write(NodeWindow& w, const Args& a) { w.write(Bytes(w.sole_area(a.root, a.bytes), a.bytes), a.buffer()); }
Difference take(NodeWindow& w, const Args& a) {
  Comm::copy(a.buffer(), ConstBytes(w.sole_area(a.root, a.bytes), a.bytes));
  return {};
}

OneStep one_step(const Args& a, const NodeWindow& w) {
  if (a.bytes == 0 || piece_bytes(w, a.bytes) < a.bytes) return {};
  if (w.rank() == a.root) return {.kind = OneStep::Kind::kSole, .bytes = a.bytes, .write = write};
  return {.kind = OneStep::Kind::kSole, .first = a.root, .end = a.root + 1, .bytes = a.bytes, .finish = take};
}

Task run(Comm& c, Args a) {
  NodeWindow& w = c.node();
  const uint64_t piece = piece_bytes(w, a.bytes);
  for (uint64_t at = 0; at < a.bytes; at += piece) {
    const Bytes now = part(a.buffer(), at, piece);
    co_await c.next_sole_step(piece);
    if (c.rank() == a.root) {
      w.write(Bytes(w.sole_area(a.root, piece), now.size()), now);
      c.publish();
    } else {
      c.publish();
      co_await c.published(a.root);
      c.copy(now, ConstBytes(w.sole_area(a.root, piece), now.size()));
    }
  }
}

double cost_us(const Shape& s, const CostModel& m) {
  const double n = static_cast<double>(s.bytes);
  const double pieces = 1 + n / static_cast<double>(window_piece(s.bytes, s.area_bytes, s.crowded));
  const double overlapped = m.sharing > 1 ? 1 : cost::kOverlappedCopy;
  return m.copy_us * n / pieces + m.pipelined_steps_us(pieces) + overlapped * m.shared_copies_us(n);
}

// All wait for a late root, nobody for another rank.
double late_us(const Shape& s, const CostModel& m) {
  return (cost_us(s, m) + (s.p - 1) * m.copy_us * static_cast<double>(s.bytes)) / s.p;
}

}  // namespace

std::span<const Algorithm> rows() {
  static constexpr Algorithm kRows[] = {{.collective = IBCOLL_BCAST,
                                         .name = "shm",
                                         .about = "root writes to the node window, all read; pipelined pieces",
                                         .run = run,
                                         .why_not = applies_on_one_node,
                                         .cost_us = cost_us,
                                         .late_us = late_us,
                                         .uses_window = true,
                                         .one_step = one_step}};
  return kRows;
}

}  // namespace ibcoll::bcast::shm
