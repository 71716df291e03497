// SPDX-License-Identifier: BSD-3-Clause
// Gather(v) along a tree of ordered cubes (tree.h), in two shapes.
//
// binomial: the lowest rank of each cube gathers its blocks. For gatherv each rank first reports to its parent how many
// bytes its subtree has.
// Source: Thakur, Gropp, "Improving the Performance of Collective Operations in MPICH on switched networks", gather for
// short messages; ordered as Traeff's trees are, so that any root is fine and no buffer is rotated.
// Rounds: ceil(lg p), gatherv twice that. Cost: ceil(lg p) alpha + (p - 1) m beta; of gatherv at worst ceil(lg p) (2
// alpha + beta sum m_i).
//
// ordered_tree: of two neighbour cubes, the one that has gathered sooner sends to the other, so no rank waits for a
// large block that moves in small steps. Gatherv builds the tree on the way, with messages of constant size and without
// a rank that knows all sizes; gather needs no message for it. Cubes with more bytes than the threshold send straight
// to the root: one start-up more, and large blocks move once.
// Source: Traeff, "Practical, linear-time, fully distributed algorithms for irregular gather and scatter", theorem 1;
// the threshold is the graceful degradation that the paper leaves out.
// Rounds: at most 2 ceil(lg p) - 1 to build, ceil(lg p) to gather. Cost: 3 ceil(lg p) alpha + beta sum m_i, and a
// penalty of less than beta sum m_i as the root is given. Memory of a rank: less than twice the threshold.
#include "runtime/collectives/gather/tree.h"

#include "runtime/collectives/gather/costs.h"

namespace ibcoll::gather::tree {
namespace {

template <TreeShape kShape, Sizes kSizes>
Task run(Comm& c, Args a) {
  const ConstBytes own = a.own(c.rank());
  const Trees trees = Trees::of_ranks(kShape, kSizes, a);
  if (c.rank() == a.root) {
    c.copy_when_idle(a.recv[a.root], own);
    co_await collect(c, trees, a, &c);
    co_return;
  }
  CubeData about{.root_bytes = own.size(), .gather_root = static_cast<uint64_t>(c.rank())};
  about.add(c.rank(), own.size());
  co_await send_up(c, trees, about, own);
}

}  // namespace

std::span<const Algorithm> rows() {
  static constexpr Algorithm kRows[] = {
      {.collective = IBCOLL_GATHER,
       .name = "binomial",
       .about = "Thakur, Gropp; ordered cubes, the lowest rank gathers; ceil(lg p) alpha + (p-1) m beta",
       .run = run<TreeShape::kBinomial, Sizes::kEqual>,
       .cost_us = tree_us,
       .late_us = late_tree_gather_us},
      {.collective = IBCOLL_GATHERV,
       .name = "binomial",
       .about = "sizes, then blocks up a binomial tree; ceil(lg p) (2 alpha + beta sum m_i) at worst",
       .run = run<TreeShape::kBinomial, Sizes::kIrregular>,
       .cost_us = oblivious_tree_us,
       .late_us = late_tree_gather_us},
      {.collective = IBCOLL_GATHER,
       .name = "ordered_tree",
       .about = "Traeff; trees of up to `threshold` bytes, these straight to the root",
       .parameter = kThreshold,
       .run = run<TreeShape::kOrdered, Sizes::kEqual>,
       .choose = choose_equal_threshold,
       .cost_us = degraded_tree_us,
       .late_us = late_degraded_gather_us},
      {.collective = IBCOLL_GATHERV,
       .name = "ordered_tree",
       .about = "Traeff, theorem 1; 3 ceil(lg p) alpha + beta sum m_i and a penalty; large cubes straight to the root",
       .parameter = kThreshold,
       .run = run<TreeShape::kOrdered, Sizes::kIrregular>,
       .choose = choose_threshold,
       .cost_us = built_tree_us,
       .late_us = late_built_gather_us}};
  return kRows;
}

}  // namespace ibcoll::gather::tree
