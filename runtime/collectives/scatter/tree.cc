// SPDX-License-Identifier: BSD-3-Clause
// Scatter(v) along a tree, in two shapes: the mirror image of gather/tree.cc. The tree is the same, of the sizes that
// the ranks wait for; blocks move down it, the largest cube first.
//
// binomial: for scatterv each rank first reports to its parent how many bytes its subtree waits for.
// Source: Thakur, Gropp, "Improving the Performance of Collective Operations in MPICH on switched networks", scatter
// for short messages. Rounds: ceil(lg p), scatterv twice that. Cost: ceil(lg p) alpha + (p - 1) m beta; of scatterv at
// worst ceil(lg p) (2 alpha + beta sum m_i).
//
// ordered_tree: scatterv builds the tree on the way; cubes with more bytes than the threshold receive straight from the
// root.
// Source: Traeff, "Practical, linear-time, fully distributed algorithms for irregular gather and scatter", theorem 1.
// Rounds: at most 2 ceil(lg p) - 1 to build, ceil(lg p) to scatter. Cost: 3 ceil(lg p) alpha + beta sum m_i, and a
// penalty of less than beta sum m_i as the root is given. Memory of a rank: less than twice the threshold and its own
// block.
#include "runtime/collectives/gather/costs.h"
#include "runtime/collectives/scatter/scatter.h"

namespace ibcoll::scatter::tree {
namespace {

using gather::Sizes;
using gather::TreeShape;

template <TreeShape kShape, Sizes kSizes>
Task run(Comm& c, Args a) {
  const gather::Trees trees = gather::Trees::of_ranks(kShape, kSizes, a);
  if (c.rank() == a.root) {
    if (!a.in_place) c.copy_when_idle(a.buffer(), a.send[a.root]);
    co_await distribute(c, trees, a, &c);
    co_return;
  }
  gather::CubeData about{.root_bytes = a.bytes, .gather_root = static_cast<uint64_t>(c.rank())};
  about.add(c.rank(), a.bytes);
  co_await receive_down(c, trees, about, a.buffer());
}

}  // namespace

std::span<const Algorithm> rows() {
  static constexpr Algorithm kRows[] = {
      {.collective = IBCOLL_SCATTER,
       .name = "binomial",
       .about = "Thakur, Gropp; ordered cubes, to the lowest rank of each; ceil(lg p) alpha + (p-1) m beta",
       .run = run<TreeShape::kBinomial, Sizes::kEqual>,
       .cost_us = gather::tree_us,
       .late_us = gather::late_tree_scatter_us},
      {.collective = IBCOLL_SCATTERV,
       .name = "binomial",
       .about = "sizes up, blocks down a binomial tree; ceil(lg p) (2 alpha + beta sum m_i) at worst",
       .run = run<TreeShape::kBinomial, Sizes::kIrregular>,
       .cost_us = gather::oblivious_tree_us,
       .late_us = gather::late_sized_scatter_us},
      {.collective = IBCOLL_SCATTER,
       .name = "ordered_tree",
       .about = "Traeff; trees of up to `threshold` bytes, these straight from the root",
       .parameter = gather::kThreshold,
       .run = run<TreeShape::kOrdered, Sizes::kEqual>,
       .choose = gather::choose_equal_threshold,
       .cost_us = gather::degraded_tree_us,
       .late_us = gather::late_degraded_scatter_us},
      {.collective = IBCOLL_SCATTERV,
       .name = "ordered_tree",
       .about =
           "Traeff, theorem 1; 3 ceil(lg p) alpha + beta sum m_i and a penalty; large cubes straight from the root",
       .parameter = gather::kThreshold,
       .run = run<TreeShape::kOrdered, Sizes::kIrregular>,
       .choose = gather::choose_threshold,
       .cost_us = gather::built_tree_us,
       .late_us = gather::late_sized_scatter_us}};
  return kRows;
}

}  // namespace ibcoll::scatter::tree
