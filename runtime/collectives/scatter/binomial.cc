// SPDX-License-Identifier: BSD-3-Clause
// Scatter(v), binomial tree: gather's tree (gather/binomial.cc), blocks move down it. For scatterv each rank first
// tells its parent how much it waits for with those below it.
// Source: Thakur, Gropp, "Improving the Performance of Collective Operations in MPICH on switched networks", scatter
// for short messages. Rounds: ceil(lg p), scatterv twice that. Cost: ceil(lg p) alpha + (p - 1) m beta; of scatterv at
// worst ceil(lg p) (2 alpha + beta sum m_i).
#include "runtime/collectives/gather/costs.h"
#include "runtime/collectives/scatter/scatter.h"

namespace ibcoll::scatter::binomial {
namespace {

template <gather::Sizes kSizes>
Task run(Comm& c, Args a) {
  const gather::Trees trees{.root = a.root, .sizes = kSizes, .block = a.bytes, .units = {}};
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
       .run = run<gather::Sizes::kEqual>,
       .cost_us = gather::tree_us},
      {.collective = IBCOLL_SCATTERV,
       .name = "binomial",
       .about = "sizes up, blocks down a binomial tree; ceil(lg p) (2 alpha + beta sum m_i) at worst",
       .run = run<gather::Sizes::kToldUp>,
       .cost_us = gather::oblivious_tree_us}};
  return kRows;
}

}  // namespace ibcoll::scatter::binomial
