// SPDX-License-Identifier: BSD-3-Clause
// Gather(v), linear-time ordered tree. Of two neighbour cubes of ranks, the one that has gathered sooner sends to the
// other, so nobody waits for a large block that moves in small steps; the root always receives. Gatherv builds the tree
// as it goes, with messages of constant size and without a rank that knows all sizes; gather needs none. Cubes with
// more bytes than the threshold send straight to the root: a start-up more, and large blocks move once.
// Source: Traeff, "Practical, linear-time, fully distributed algorithms for irregular gather and scatter", theorem 1;
// the threshold is the graceful degradation that the paper leaves out.
// Rounds: at most 2 ceil(lg p) - 1 to build, ceil(lg p) to gather. Cost: 3 ceil(lg p) alpha + beta sum m_i, and a
// penalty of less than beta sum m_i as the root is given. Memory of a rank: less than twice the threshold.
#include "runtime/collectives/gather/costs.h"
#include "runtime/collectives/gather/tree.h"

namespace ibcoll::gather::ordered_tree {
namespace {

template <Sizes kSizes>
Task run(Comm& c, Args a) {
  const ConstBytes own = a.own(c.rank());
  const Trees trees{.root = a.root, .sizes = kSizes, .block = a.bytes, .threshold = a.parameter, .units = {}};
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
       .name = "ordered_tree",
       .about = "Traeff; trees of up to `threshold` bytes, these straight to the root",
       .parameter = kThreshold,
       .run = run<Sizes::kEqual>,
       .choose = choose_equal_threshold,
       .cost_us = degraded_tree_us},
      {.collective = IBCOLL_GATHERV,
       .name = "ordered_tree",
       .about = "Traeff, theorem 1; 3 ceil(lg p) alpha + beta sum m_i and a penalty; large cubes straight to the root",
       .parameter = kThreshold,
       .run = run<Sizes::kBuild>,
       .choose = choose_threshold,
       .cost_us = built_tree_us}};
  return kRows;
}

}  // namespace ibcoll::gather::ordered_tree
