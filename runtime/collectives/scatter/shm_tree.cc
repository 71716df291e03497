// SPDX-License-Identifier: BSD-3-Clause
// Scatter(v), node-aware: the mirror image of gather/shm_tree.cc. Blocks come down the ordered tree of nodes to the
// gateway of each (the root on the root's node, else the leader), which writes them and their sizes to the node window.
// For scatterv between nodes the ranks of a node first write the sizes that they wait for there. Blocks of more bytes
// than the threshold, or than an area of the window, come straight from the root. For any placement.
// Source: the leaders of Qian, Afsahi; between nodes Traeff's trees, which scatterv builds from what nodes wait for.
// Cost, N nodes: a step of the window (scatterv between nodes: two), 2 copies; between nodes ordered_tree's, p = N.
#include "runtime/collectives/gather/node_stage.h"
#include "runtime/collectives/scatter/one_step.h"
#include "runtime/collectives/scatter/scatter.h"

namespace ibcoll::scatter::shm_tree {
namespace {

using gather::NodeCells;
using gather::NodeStage;
using gather::Sizes;

template <Sizes kSizes>
Task run(Comm& c, Args a) {
  NodeStage stage(c, a.root, a.parameter);
  NodeWindow& w = c.node();
  const bool is_root = c.rank() == a.root, is_gateway = c.rank() == stage.gateway();
  if (is_root) {
    for (int i = 1; i < c.size(); ++i)
      if (a.send.size(c.peer(i)) > stage.longest()) c.put(c.peer(i), a.send[c.peer(i)]);
    if (!a.in_place) c.copy_when_idle(a.buffer(), a.send[a.root]);
  } else if (a.bytes > stage.longest()) {
    c.announce(a.root, a.buffer());
  }
  auto* const sizes = c.scratch_array<uint64_t>(stage.locals().size());
  if (!sizes) co_return;
  std::fill_n(sizes, stage.locals().size(), a.bytes);
  gather::CubeData about;
  if (kSizes == Sizes::kEqual) {
    about.root_bytes = stage.fits(a.bytes) ? a.bytes * stage.locals().size() : 0;
  } else if (c.placement().node_count() > 1) {
    co_await c.next_own_step(stage.step_bytes());
    stage.write_size(a.bytes);
    c.publish();
    if (is_gateway) {
      co_await c.all_published();
      if (is_root && !stage.agrees(a.send)) co_return;
      about = stage.about();
      for (int local = 0; local < w.size(); ++local) sizes[local] = stage.size(local);
    }
  }
  Comm* const gateways = is_gateway ? stage.gateways() : nullptr;
  if (is_gateway && !gateways) co_return;
  const gather::Trees trees = stage.trees(kSizes, a.bytes, a.parameter);
  const std::byte* node = nullptr;
  if (is_gateway && !is_root) {
    std::byte* const landing = c.scratch(about.bytes());
    if (!landing) co_return;
    node = landing;
    co_await receive_down(*gateways, trees, about, Bytes(landing, about.bytes()));
  }
  uint64_t writes = 0;
  if (is_root)
    writes = stage.longest_written([&](int l) { return a.send.size(stage.locals()[static_cast<size_t>(l)]); });
  else if (is_gateway)
    writes = stage.longest_written([&](int local) { return sizes[local]; });
  co_await c.next_own_step(stage.step_bytes(writes));
  if (is_root) stage.place_others(a.send);
  if (is_gateway && !is_root) stage.unpack(sizes, node, a.buffer());
  c.publish();
  if (is_root) co_await distribute(*gateways, trees, a, &c);
  if (!is_gateway) {
    co_await c.published(stage.local_gateway());
    if (!stage.take(a.buffer())) co_return;
  }
  co_await c.received();
  co_await c.flushed();
}

double equal_cost_us(const Shape& s, const CostModel& m) { return gather::shm_tree_us(s, m, 1, false); }
double cost_us(const Shape& s, const CostModel& m) { return gather::shm_tree_us(s, m, s.nodes > 1 ? 2 : 1, true); }

// Below a late leader other nodes may wait.
double equal_late_us(const Shape& s, const CostModel& m) {
  const double below = gather::late_down_us(s, m, s.nodes, ceil_log2(s.nodes), gather::node_bytes(s));
  return gather::late_node_scatter_us(s, m, equal_cost_us(s, m), below / s.most_local);
}
double late_us(const Shape& s, const CostModel& m) {
  return gather::late_node_scatter_us(s, m, cost_us(s, m),
                                      gather::late_sized_scatter_of_us(m, s.nodes, gather::node_bytes(s)));
}

constexpr Algorithm row(ibcoll_collective_t collective, Task (*run)(Comm&, Args),
                        double (*cost)(const Shape&, const CostModel&),
                        double (*late)(const Shape&, const CostModel&)) {
  return {.collective = collective,
          .name = "shm_tree",
          .about = "Traeff's ordered tree to a rank of each node, from there through the node window",
          .parameter = gather::kThreshold,
          .run = run,
          .why_not = gather::applies_to_shared_nodes,
          .choose = gather::choose_node_threshold,
          .cost_us = cost,
          .late_us = late,
          .uses_window = true,
          .one_step = one_step};
}

}  // namespace

std::span<const Algorithm> rows() {
  static constexpr Algorithm kRows[] = {row(IBCOLL_SCATTER, run<Sizes::kEqual>, equal_cost_us, equal_late_us),
                                        row(IBCOLL_SCATTERV, run<Sizes::kIrregular>, cost_us, late_us)};
  return kRows;
}

}  // namespace ibcoll::scatter::shm_tree
