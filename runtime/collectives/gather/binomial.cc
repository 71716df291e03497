// SPDX-License-Identifier: BSD-3-Clause
// Gather(v), binomial tree: of two neighbour cubes of units, the upper sends all that it has gathered to the lowest
// rank of the lower one; the root receives from its neighbour cubes. For gatherv each rank first tells its parent how
// much it has below itself.
// Source: Thakur, Gropp, "Improving the Performance of Collective Operations in MPICH on switched networks", gather for
// short messages; ordered as Traeff's trees are, so that any root is fine and no buffer is rotated.
// Rounds: ceil(lg p), gatherv twice that. Cost: ceil(lg p) alpha + (p - 1) m beta; of gatherv at worst ceil(lg p) (2
// alpha + beta sum m_i).
#include "runtime/collectives/gather/costs.h"
#include "runtime/collectives/gather/tree.h"

namespace ibcoll::gather::binomial {
namespace {

template <Sizes kSizes>
Task run(Comm& c, Args a) {
  const ConstBytes own = a.own(c.rank());
  const Trees trees{.root = a.root, .sizes = kSizes, .block = a.bytes, .units = {}};
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
       .run = run<Sizes::kEqual>,
       .cost_us = tree_us},
      {.collective = IBCOLL_GATHERV,
       .name = "binomial",
       .about = "sizes, then blocks up a binomial tree; ceil(lg p) (2 alpha + beta sum m_i) at worst",
       .run = run<Sizes::kToldUp>,
       .cost_us = oblivious_tree_us}};
  return kRows;
}

}  // namespace ibcoll::gather::binomial
