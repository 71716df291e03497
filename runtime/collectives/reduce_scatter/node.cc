// SPDX-License-Identifier: BSD-3-Clause
// Reduce-scatter in three phases: (1) the ranks of a node combine their vectors in the node window, (2) the leaders of
// the nodes do a reduce-scatter of the blocks of whole nodes, (3) each rank copies its block out of the node window.
// Blocks are packed node after node. Sources: Thakur, Gropp and Traff 2024 for phase 2; phases 1 and 3 as in Qian,
// Afsahi, Shm_Direct. Operands stay in rank order where the ranks of each node are neighbours; elsewhere the operation
// must commute.
// Cost: that of phase 2 on N nodes for L blocks each, two steps of the node window, and 3 copies of n on the node.
#include "runtime/collectives/reduce_scatter/node.h"

namespace ibcoll::reduce_scatter::node {

uint64_t packed_bytes(const Args& a, int p, uint64_t cell) {
  uint64_t sum = 0;
  for (int i = 0; i < p; ++i) sum += std::min(cell, a.send.size(i));
  return sum;
}

void pack(const Args& a, const Placement& nodes, uint64_t at, uint64_t cell, std::byte* to, uint64_t* starts) {
  uint64_t end = 0;
  for (int node = 0; node < nodes.node_count(); ++node) {
    starts[node] = end;
    for (const int rank : nodes.ranks_of(node)) {
      const ConstBytes block = part(a.send[rank], at, cell);
      Comm::copy(Bytes(to + end, block.size()), block);
      end += block.size();
    }
  }
  starts[nodes.node_count()] = end;
}

Task combine_on_node(Comm& c, Reduction reduction, bool any_order, Packed blocks) {
  const uint64_t element = reduction.element_bytes();
  const NodeOwners leader{Segments{blocks.vector().size() / element, element, 1}, 0};
  const Bytes sum = c.node().rank() == 0 ? blocks.vector() : Bytes();
  co_await reduce_on_node(c, leader, reduction, any_order, blocks.vector(), sum);
}

Task hand_out(Comm& c, Args a, uint64_t at_block, uint64_t cell, ConstBytes blocks) {
  NodeWindow& w = c.node();
  const Bytes own = part(a.buffer(), at_block, cell);
  uint64_t before = 0;  // of lower ranks
  for (const int rank : c.placement().ranks_of(c.placement().node_of(c.rank())))
    if (rank < c.rank()) before += part(a.send[rank], at_block, cell).size();
  const uint64_t piece = std::min(blocks.size(), w.area_bytes());
  for (uint64_t at = 0; at < blocks.size(); at += piece) {
    const ConstBytes now = part(blocks, at, piece);
    co_await c.next_sole_step(piece);
    if (w.rank() == 0) w.write(Bytes(w.sole_area(0, piece), now.size()), now);
    c.publish();
    if (w.rank() > 0) co_await c.published(0);
    const std::byte* const from = w.rank() == 0 ? now.data() : w.sole_area(0, piece);
    const uint64_t first = std::max(at, before), last = std::min(at + now.size(), before + own.size());
    if (first < last) c.copy(own.subspan(first - before, last - first), ConstBytes(from + (first - at), last - first));
  }
}

namespace {

using Cost = double (*)(const Shape&, const CostModel&);

template <Among kAmong>
Task run(Comm& c, Args a) {
  const Placement& nodes = c.placement();
  const int here = nodes.node_of(c.rank());
  const bool leads = c.node().rank() == 0;
  const uint64_t longest = longest_block(a, c.size()), cell = cell_bytes(a, c.size());
  if (longest == 0) co_return;
  const uint64_t most = packed_bytes(a, c.size(), cell);
  auto* const starts = c.scratch_array<uint64_t>(static_cast<uint64_t>(nodes.node_count()) + 1);
  std::byte* const memory = c.scratch(leads ? 2 * most : most);
  if (!starts || !memory) co_return;
  for (uint64_t at = 0; at < longest; at += cell) {
    pack(a, nodes, at, cell, memory, starts);
    const Packed blocks{memory, starts, nodes.node_count()};
    co_await combine_on_node(c, a.reduction, a.any_order(), blocks);
    if (leads) co_await kAmong(c.leaders(), a.reduction, blocks, memory + most);
    co_await hand_out(c, a, at, cell, blocks[here]);
  }
}

template <Cost kCost>
double cost_us(const Shape& s, const CostModel& m) {
  Shape all = s, leaders = counterparts_of(s, 1);
  all.bytes = s.total;
  leaders.bytes = s.bytes * static_cast<uint64_t>(s.most_local);
  const double handed = m.step_us(2) + 2 * m.copy_us * static_cast<double>(leaders.bytes);
  return m.own_copies_us(static_cast<double>(s.total)) + reduce_on_node_us(all, m, 1) +
         kCost(leaders, model_of_leaders(s, m)) + handed;
}

template <Among kAmong, Cost kCost>
constexpr Algorithm node_row(ibcoll_collective_t collective, const char* name, const char* about, Order order) {
  return {.collective = collective,
          .name = name,
          .about = about,
          .run = run<kAmong>,
          .why_not = order == Order::kOwn ? applies_to_commutative_reductions_of_nodes : applies_to_reductions_of_nodes,
          .cost_us = cost_us<kCost>,
          .uses_window = true,
          .order = order};
}

constexpr Algorithm halving(ibcoll_collective_t collective) {
  return node_row<recursive_halving::among, recursive_halving::cost_us>(
      collective, "node_recursive_halving", "node window, leaders by recursive halving; lg N alpha + n beta",
      Order::kOwn);
}
constexpr Algorithm doubling(ibcoll_collective_t collective) {
  return node_row<recursive_doubling::among, recursive_doubling::cost_us>(
      collective, "node_recursive_doubling", "node window, leaders by recursive doubling; lg N (alpha + n beta)",
      Order::kNodes);
}
constexpr Algorithm pairs(ibcoll_collective_t collective) {
  return node_row<pairwise::among, pairwise::cost_us>(
      collective, "node_pairwise", "node window, leaders pairwise; (N-1) alpha + n beta", Order::kOwn);
}
constexpr Algorithm graph(ibcoll_collective_t collective) {
  return node_row<circulant::among, circulant::cost_us>(
      collective, "node_circulant", "node window, leaders on a circulant graph; ceil(lg N) alpha + n beta",
      Order::kOwn);
}

}  // namespace

std::span<const Algorithm> rows() {
  constexpr ibcoll_collective_t kAny = IBCOLL_REDUCE_SCATTER, kBlock = IBCOLL_REDUCE_SCATTER_BLOCK;
  static constexpr Algorithm kRows[] = {halving(kAny), halving(kBlock), doubling(kAny), doubling(kBlock),
                                        pairs(kAny),   pairs(kBlock),   graph(kAny),    graph(kBlock)};
  return kRows;
}

}  // namespace ibcoll::reduce_scatter::node
