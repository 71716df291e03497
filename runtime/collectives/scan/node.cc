// SPDX-License-Identifier: BSD-3-Clause
// Scan and exscan by nodes whose ranks are neighbours: (1) each rank combines the operands of the lower ranks of its
// node in the node window, and the leader those of all; (2) the leaders of the nodes do an exclusive scan of these; (3)
// all ranks of the node copy its result out of the window and combine it with theirs, the lower operand first.
// Source: Thakur, Gropp, for phase 2 (recursive doubling). Operands stay in rank order, so the operation need not
// commute. On one node phase 1 is all. Cost: ceil(lg N) (alpha + n beta + n gamma), two steps of the node window, and L
// n read by its last rank.
#include "runtime/collectives/framework/cost_patterns.h"
#include "runtime/collectives/framework/node_reduce.h"
#include "runtime/collectives/scan/scan.h"

namespace ibcoll::scan::node {
namespace {

uint64_t piece_bytes(const NodeWindow& w, const Args& a) {
  return std::min(a.bytes, whole_elements(w.area_bytes(), a.reduction.element_bytes()));
}

void write(NodeWindow& w, ConstBytes operand) {
  w.write(Bytes(w.own_area(w.rank(), operand.size()), operand.size()), operand);
}

// Nobody reads the operand of the last rank, unless its leader combines those of the node.
bool is_read(const NodeWindow& w, bool one_node) { return !one_node || w.rank() + 1 < w.size(); }

template <bool kInclusive>
OneStep one_step(const Args& a, const NodeWindow& w) {
  if (a.bytes == 0 || piece_bytes(w, a) < a.bytes) return {};
  OneStep step{.kind = OneStep::Kind::kOwn, .end = w.rank(), .bytes = is_read(w, true) ? a.bytes : 0};
  if (is_read(w, true)) step.write = [](NodeWindow& window, const Args& args) { write(window, args.operand()); };
  if (kInclusive || w.rank() > 0)
    step.finish = [](NodeWindow& window, const Args& args) {
      combine_own_areas(window, args.reduction, args.buffer(), args.operand().data(), 0, args.bytes,
                        window.rank() + kInclusive);
      return Difference();
    };
  return step;
}

Task run(Comm& c, Args a) {
  NodeWindow& w = c.node();
  const Placement& nodes = c.placement();
  const bool inclusive = a.collective == IBCOLL_SCAN;
  const int here = nodes.node_of(c.rank()), local = w.rank();
  const bool leads = local == 0, between = leads && nodes.node_count() > 1;
  const uint64_t element = a.reduction.element_bytes();
  const uint64_t piece = piece_bytes(w, a);
  std::byte* const memory = between && a.bytes > 0 ? c.scratch(3 * piece) : nullptr;
  if (between && a.bytes > 0 && !memory) co_return;
  for (uint64_t at = 0; at < a.bytes; at += piece) {
    const ConstBytes operand = part(a.operand(), at, piece);
    const Bytes result = part(a.buffer(), at, piece);
    const uint64_t n = result.size();
    const Bytes total(memory, between ? n : 0), before(memory + piece, between ? n : 0);
    const bool writes = is_read(w, nodes.node_count() == 1);
    const uint64_t written = writes ? n : 0;
    co_await c.next_own_step(written);
    if (writes) write(w, operand);
    c.publish();
    for (int i = 0; i < (between ? w.size() : local); ++i)
      if (i != local) co_await c.published(i);
    if (between) combine_own_areas(w, a.reduction, total, w.own_area(local, n), 0, n, w.size());
    if (inclusive || local > 0)
      combine_own_areas(w, a.reduction, result, operand.data(), 0, n, local + (inclusive ? 1 : 0));
    if (between) co_await recursive_doubling::among(c.leaders(), a.reduction, total, before, memory + 2 * piece);
    if (here == 0) continue;  // nothing comes before
    co_await c.next_sole_step(n);
    if (leads) w.write(Bytes(w.sole_area(0, n), n), before);
    c.publish();
    if (!leads) co_await c.published(0);
    const std::byte* const front = leads ? before.data() : w.sole_area(0, n);
    if (inclusive || local > 0)
      a.reduction(front, result.data(), n / element);
    else
      c.copy(result, ConstBytes(front, n));
  }
}

const char* why_not(const Shape& s) {
  if (s.area_bytes == 0) return "no two ranks of the team share a node";
  if (const char* const reason = window_holds_no_element(s)) return reason;
  return s.nodes_in_rank_order ? nullptr : "the ranks of a node are not neighbours";
}

double cost_us(const Shape& s, const CostModel& m) {
  const double n = static_cast<double>(s.bytes);
  const double rounds = 1 + n / static_cast<double>(s.area_bytes);
  const double between = recursive_doubling::rounds_us(counterparts_of(s, 1), model_of_leaders(s, m));
  const double shared = s.nodes > 1 ? rounds * m.step_us(2) + 2 * m.shared_copies_us(n) : 0;
  return rounds * m.step_us(s.most_local) + m.copies_us(n) + m.shared_copies_us(n * (s.most_local + 1) / 2) +
         (s.nodes > 1 ? between : 0) + shared;
}

// In the mean, half of the rounds between nodes wait for a late rank, unless their bytes keep all busy.
double late_us(const Shape& s, const CostModel& m) {
  return cost_us(s, m) - (s.nodes > 1 ? ceil_log2(s.nodes) * model_of_leaders(s, m).message_us(0) / 2 : 0);
}

constexpr const char* kAbout = "node window, leaders by recursive doubling, node window; ceil(lg N) (alpha + n beta)";

}  // namespace

std::span<const Algorithm> rows() {
  static constexpr Algorithm kRows[] = {{.collective = IBCOLL_SCAN,
                                         .name = "node",
                                         .about = kAbout,
                                         .run = run,
                                         .why_not = why_not,
                                         .cost_us = cost_us,
                                         .late_us = late_us,
                                         .uses_window = true,
                                         .one_step = one_step<true>},
                                        {.collective = IBCOLL_EXSCAN,
                                         .name = "node",
                                         .about = kAbout,
                                         .run = run,
                                         .why_not = why_not,
                                         .cost_us = cost_us,
                                         .late_us = late_us,
                                         .uses_window = true,
                                         .one_step = one_step<false>}};
  return kRows;
}

}  // namespace ibcoll::scan::node
