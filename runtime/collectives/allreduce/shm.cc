// SPDX-License-Identifier: BSD-3-Clause
// Allreduce on one node. Short buffers: every rank publishes its operand and combines all p of them itself. Long ones:
// rank i combines segment i of all operands and publishes it, then everyone collects the p segments. Operands are
// combined in rank order, alike on all ranks: results are bitwise the same everywhere, and the operation need not
// commute.
// Cost: short: 1 step, p n read per rank; long: 2 steps per area, 3 n moved per rank.
#include "runtime/collectives/framework/node_reduce.h"

namespace ibcoll::allreduce::shm {
namespace {

constexpr uint64_t kShort = 2048;

bool all_combine_all(int p, uint64_t bytes) { return p <= 2 || bytes <= kShort; }

uint64_t most_bytes(const NodeWindow& w, const Args& a) {
  return whole_elements(w.area_bytes(), a.reduction.element_bytes());
}

void write(NodeWindow& w, ConstBytes operand) {
  w.write(Bytes(w.area(w.rank(), operand.size()), operand.size()), operand);
}
void combine(NodeWindow& w, const Reduction& reduction, ConstBytes operand, Bytes result) {
  const uint64_t n = result.size();
  const bool stay = stays(w, reduction, operand.data(), result.data());
  const std::byte* const own = stay ? operand.data() : w.area(w.rank(), n);
  combine_areas(w, reduction, result.data(), own, 0, n / reduction.element_bytes(), n);
}

OneStep one_step(const Args& a, const NodeWindow& w) {
  if (a.bytes == 0 || a.bytes > most_bytes(w, a) || !all_combine_all(w.size(), a.bytes)) return {};
  return {.kind = OneStep::Kind::kAll,
          .end = w.size(),
          .bytes = a.bytes,
          .write = [](NodeWindow& window, const Args& args) { write(window, args.operand()); },
          .finish =
              [](NodeWindow& window, const Args& args) {
                combine(window, args.reduction, args.operand(), args.buffer());
                return Difference();
              }};
}

Task run(Comm& c, Args a) {
  NodeWindow& w = c.node();
  const uint64_t element = a.reduction.element_bytes();
  const uint64_t most = most_bytes(w, a);
  const auto p = static_cast<uint64_t>(c.size());
  for (uint64_t at = 0; at < a.bytes; at += most) {
    const ConstBytes mine = part(a.operand(), at, most);
    const Bytes piece = part(a.buffer(), at, most);
    const uint64_t n = piece.size();
    co_await c.next_step(n);
    write(w, mine);
    c.publish();
    co_await c.all_published();
    if (all_combine_all(c.size(), a.bytes)) {
      combine(w, a.reduction, mine, piece);
      continue;
    }
    // Segment i is [i, i + 1) * count / p. The operands' area is free for reuse only after the next publish().
    co_await c.next_step(n);
    const uint64_t count = n / element;
    const auto start = [=](int i) { return static_cast<uint64_t>(i) * count / p * element; };
    const uint64_t from = start(c.rank()), to = start(c.rank() + 1);
    combine_areas(w, a.reduction, w.area(c.rank(), n) + from, mine.data() + from, from, (to - from) / element, n, 1);
    c.publish();
    for (int i = 0; i < c.size(); ++i) {
      const int owner = c.peer(-i);
      const uint64_t first = start(owner), bytes = start(owner + 1) - first;
      if (owner != c.rank()) co_await c.published(owner);
      c.copy(piece.subspan(first, bytes), ConstBytes(w.area(owner, n) + first, bytes));
    }
  }
}

double cost_us(const Shape& s, const CostModel& m) {
  const double n = static_cast<double>(s.bytes);
  const double steps = 1 + n / static_cast<double>(s.area_bytes);
  const double touched = touched_areas(s);
  if (all_combine_all(s.p, s.bytes))
    return steps * m.step_us(s.p) + m.copies_us(n, touched) + m.combines_us(n) +
           m.shared_copies_us((s.p - 1) * n, touched);
  return 2 * steps * m.step_us(s.p) + m.copies_us(2 * n, touched) + m.shared_copies_us(n, touched);
}

}  // namespace

std::span<const Algorithm> rows() {
  static constexpr Algorithm kRows[] = {{.collective = IBCOLL_ALLREDUCE,
                                         .name = "shm",
                                         .about = "operands in the node window, combined in rank order",
                                         .run = run,
                                         .why_not = applies_to_reductions_on_one_node,
                                         .cost_us = cost_us,
                                         .uses_window = true,
                                         .order = Order::kRanks,
                                         .one_step = one_step}};
  return kRows;
}

}  // namespace ibcoll::allreduce::shm
