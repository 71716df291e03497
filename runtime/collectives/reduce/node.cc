// SPDX-License-Identifier: BSD-3-Clause
// Reduce in two phases: the ranks of a node combine their operands in the node window, then ranks that stand for their
// nodes (the root for its own) combine the results between nodes. With k such ranks per node each owns a segment, and a
// third phase takes the segments to the root through the window.
// Sources: Thakur, Gropp for phase 2, by a binomial tree (short) or reduce-scatter and gather (long).
// Operands stay in rank order where the ranks of each node are neighbours; elsewhere the operation must commute.
// On one node ("shm") there is no phase 2. Cost: that of phase 2 on N nodes for n / k bytes, a step of the node window,
// and 2 copies of n on the node.
#include <algorithm>

#include "runtime/collectives/framework/node_reduce.h"
#include "runtime/collectives/reduce/reduce.h"

namespace ibcoll::reduce::node {
namespace {

using Cost = double (*)(const Shape&, const CostModel&);

// One owner, the root, and one piece: what reduce_on_node() writes and awaits then.
void write(NodeWindow& w, const Args& a) {
  w.write(Bytes(w.own_area(w.rank(), a.bytes), a.bytes), a.operand(), a.root);
}
Difference combine(NodeWindow& w, const Args& a) {
  combine_own_areas(w, a.reduction, a.buffer(), a.operand().data(), 0, a.bytes, w.size());
  return {};
}

OneStep one_step(const Args& a, const NodeWindow& w) {
  const uint64_t most =
      whole_elements(std::min<uint64_t>(w.area_bytes(), kReductionPiece), a.reduction.element_bytes());
  if (a.bytes == 0 || a.bytes > most || a.parameter > 1 || w.size() < 2) return {};
  if (w.rank() != a.root) return {.kind = OneStep::Kind::kOwn, .bytes = a.bytes, .write = write};
  if (a.in_place) return {};  // the result is where an operand is
  return {.kind = OneStep::Kind::kOwn, .end = w.size(), .bytes = a.bytes, .finish = combine};
}

template <Among kAmong, Slots kSlots>
Task run(Comm& c, Args a) {
  const Placement& nodes = c.placement();
  const uint64_t element = a.reduction.element_bytes();
  const int owners = owners_of(a.parameter, nodes.fewest_local(), c.node().area_bytes(), element);
  const int here = nodes.node_of(c.rank()), there = nodes.node_of(a.root);
  const std::span<const int> of_root = nodes.ranks_of(there);
  const int root_local = static_cast<int>(std::find(of_root.begin(), of_root.end(), a.root) - of_root.begin());
  const int own = NodeOwners{{}, here == there ? root_local : 0}.owned_by(c.node().rank(), c.node().size());
  const bool owns = own < owners, root = c.rank() == a.root;
  const auto slots = static_cast<uint64_t>(kSlots(nodes.node_count()));
  const uint64_t piece = std::min(a.bytes, whole_elements(kReductionPiece / slots, element));
  std::byte* const work = owns && a.bytes > 0 ? c.scratch(piece * (slots + 1)) : nullptr;
  if (owns && a.bytes > 0 && !work) co_return;
  Comm& others = owns ? counterparts(c, own, there, root_local) : c;
  for (uint64_t at = 0; at < a.bytes; at += piece) {
    const ConstBytes operand = part(a.operand(), at, piece);
    const Segments segments{operand.size() / element, element, owners};
    const NodeOwners owned{segments, here == there ? root_local : 0};
    const Bytes vector = root ? part(a.buffer(), at, piece) : Bytes();
    Bytes segment = owns ? Bytes(work + piece * slots, segments.bytes(own)) : Bytes();
    if (root) segment = segments.of(vector, own);
    co_await reduce_on_node(c, owned, a.reduction, a.any_order(), operand, segment);
    if (!segment.empty()) {
      Args now = in_place_call(a, segment);
      now.root = there;
      co_await kAmong(others, now, work);
    }
    if (here == there && owners > 1) co_await share_on_node(c, owned, segment, vector);
  }
}

template <Cost kCost>
double node_us(const Shape& s, const CostModel& m) {
  const int owners = owners_of(s.parameter, s.fewest_local, s.area_bytes, s.element_bytes);
  const double between = kCost(counterparts_of(s, owners), model_of_leaders(s, m, owners));
  const double n = static_cast<double>(s.bytes);
  const double shared = owners > 1 ? m.step_us(owners) + 2 * m.copy_us * n : 0;
  return reduce_on_node_us(s, m, owners) + between + shared;
}

double nothing_us(const Shape&, const CostModel&) { return 0; }

template <Among kAmong, Slots kSlots, Cost kCost, Cost kLate>
constexpr Algorithm row(const char* name, const char* about, Order order,
                        const char* (*why_not)(const Shape&) = applies_to_reductions_of_nodes,
                        FindOneStep find_one_step = nullptr) {
  return {.collective = IBCOLL_REDUCE,
          .name = name,
          .about = about,
          .parameter = {Parameter::Unit::kCount, "leaders", 1, 1024},
          .run = run<kAmong, kSlots>,
          .why_not = why_not,
          .choose = best_owners<node_us<kCost>>,
          .cost_us = node_us<kCost>,
          .late_us = node_us<kLate>,
          .uses_window = true,
          .order = order,
          .one_step = find_one_step};
}

}  // namespace

std::span<const Algorithm> rows() {
  static constexpr Algorithm kRows[] = {
      row<binomial::among, binomial::slots, binomial::cost_us, binomial::late_us>(
          "node_binomial", "node window, then a binomial tree of nodes; ceil(lg N) (alpha + n beta)", Order::kOwn),
      row<reduce_scatter_gather::among, reduce_scatter_gather::slots, reduce_scatter_gather::cost_us,
          reduce_scatter_gather::late_us>(
          "node_reduce_scatter_gather", "node window, then halving and gather; 2 lg N alpha + 2 n beta", Order::kNodes),
      row<binomial::among, binomial::slots, nothing_us, nothing_us>(
          "shm", "operands in the node window; `leaders` ranks combine", Order::kRanks,
          applies_to_reductions_on_one_node, one_step)};
  return kRows;
}

}  // namespace ibcoll::reduce::node
