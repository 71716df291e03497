// SPDX-License-Identifier: BSD-3-Clause
// Scatter(v), linear-time ordered tree: the mirror image of gather/ordered_tree.cc. The tree is built in the same way,
// from the sizes that the ranks wait for; blocks move down it, the largest cube first; cubes with more bytes than the
// threshold receive straight from the root.
// Source: Traeff, "Practical, linear-time, fully distributed algorithms for irregular gather and scatter", theorem 1.
// Rounds: at most 2 ceil(lg p) - 1 to build, ceil(lg p) to scatter. Cost: 3 ceil(lg p) alpha + beta sum m_i, and a
// penalty of less than beta sum m_i as the root is given. Memory of a rank: less than twice the threshold and its own
// block.
#include "runtime/collectives/gather/costs.h"
#include "runtime/collectives/scatter/scatter.h"

namespace ibcoll::scatter::ordered_tree {
namespace {

template <gather::Sizes kSizes>
Task run(Comm& c, Args a) {
  const gather::Trees trees{.root = a.root, .sizes = kSizes, .block = a.bytes, .threshold = a.parameter, .units = {}};
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
       .name = "ordered_tree",
       .about = "Traeff; trees of up to `threshold` bytes, these straight from the root",
       .parameter = gather::kThreshold,
       .run = run<gather::Sizes::kEqual>,
       .choose = gather::choose_equal_threshold,
       .cost_us = gather::degraded_tree_us},
      {.collective = IBCOLL_SCATTERV,
       .name = "ordered_tree",
       .about =
           "Traeff, theorem 1; 3 ceil(lg p) alpha + beta sum m_i and a penalty; large cubes straight from the root",
       .parameter = gather::kThreshold,
       .run = run<gather::Sizes::kBuild>,
       .choose = gather::choose_threshold,
       .cost_us = gather::built_tree_us}};
  return kRows;
}

}  // namespace ibcoll::scatter::ordered_tree
