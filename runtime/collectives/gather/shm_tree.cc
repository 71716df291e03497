// SPDX-License-Identifier: BSD-3-Clause
// Gather(v), node-aware: the ranks of a node write their blocks to the node window; its gateway (the root on the root's
// node, else the leader) sends them on together, along the ordered tree of nodes. The root copies the blocks of its own
// node from the window to their places. Blocks of more bytes than the threshold, or than an area of the window, go
// straight to the root. For any placement.
// Source: the leaders of Qian, Afsahi; between nodes Traeff's trees, which gatherv builds from what nodes have.
// Cost, N nodes: a step of the window, 2 copies; between nodes that of ordered_tree with p = N.
#include "runtime/collectives/gather/node_stage.h"
#include "runtime/collectives/gather/one_step.h"

namespace ibcoll::gather::shm_tree {
namespace {

template <Sizes kSizes>
Task run(Comm& c, Args a) {
  NodeStage stage(c, a.root, a.parameter);
  const ConstBytes own = a.own(c.rank());
  const bool is_root = c.rank() == a.root, is_gateway = c.rank() == stage.gateway();
  stage.move_long(a, own);
  const uint64_t written = stage.step_bytes(is_gateway ? 0 : own.size());
  co_await c.next_own_step(written);
  stage.write(own);
  c.publish();
  if (!is_gateway) {
    co_await c.flushed();
    co_return;
  }
  co_await c.all_published();
  Comm* const gateways = stage.gateways();
  if (!gateways) co_return;
  const Trees trees = stage.trees(kSizes, a.bytes, a.parameter);
  if (is_root) {
    if (!stage.agrees(a.recv_to_read())) co_return;
    stage.place(a.recv);
    co_await collect(*gateways, trees, a, &c);
    co_await c.received();
    co_return;
  }
  const CubeData about = stage.about();
  std::byte* const node = c.scratch(about.bytes());
  if (!node) co_return;
  stage.pack(own, node);
  co_await send_up(*gateways, trees, about, ConstBytes(node, about.bytes()));
}

double cost_us(const Shape& s, const CostModel& m) { return shm_tree_us(s, m, 1, !s.sizes_known); }

double late_us(const Shape& s, const CostModel& m) {
  const double between = s.sizes_known ? late_up_us(s, m, s.nodes, ceil_log2(s.nodes), node_bytes(s))
                                       : late_built_of_us(s, m, s.nodes, node_bytes(s));
  return late_node_gather_us(s, m, between);
}

constexpr Algorithm row(ibcoll_collective_t collective, Task (*run)(Comm&, Args)) {
  return {.collective = collective,
          .name = "shm_tree",
          .about = "through the node window to a rank of each node; Traeff's ordered tree between nodes",
          .parameter = kThreshold,
          .run = run,
          .why_not = applies_to_shared_nodes,
          .choose = choose_node_threshold,
          .cost_us = cost_us,
          .late_us = late_us,
          .uses_window = true,
          .one_step = one_step};
}

}  // namespace

std::span<const Algorithm> rows() {
  static constexpr Algorithm kRows[] = {row(IBCOLL_GATHER, run<Sizes::kEqual>),
                                        row(IBCOLL_GATHERV, run<Sizes::kIrregular>)};
  return kRows;
}

}  // namespace ibcoll::gather::shm_tree
