// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/collectives/allgather/ring_order.h"

#include <cstdint>

namespace ibcoll::allgather {
namespace {

// Calls visit(i) for each i in [0, count) once: as many of those without data before each one with data as the others
// have, or one more; where none has data, all in their order.
template <typename HasData, typename Visit>
void equidistant(int count, HasData has_data, Visit visit) {
  int full = 0;
  for (int i = 0; i < count; ++i) full += has_data(i);
  const int empty = count - full;
  int next_full = 0, next_empty = 0, placed = 0;
  const auto visit_empty = [&](int up_to) {
    for (; placed < up_to; ++placed) {
      while (has_data(next_empty)) ++next_empty;
      visit(next_empty++);
    }
  };
  for (int64_t k = 1; k <= full; ++k) {
    visit_empty(static_cast<int>(k * empty / full));
    while (!has_data(next_full)) ++next_full;
    visit(next_full++);
  }
  visit_empty(empty);
}

}  // namespace

void ring_order(const Placement& placement, const Blocks& blocks, std::span<int> order) noexcept {
  size_t at = 0;
  const auto rank_has_data = [&](int rank) { return blocks.size(rank) > 0; };
  const auto append = [&](int rank) { order[at++] = rank; };
  if (placement.node_count() == 1) return equidistant(placement.size(), rank_has_data, append);
  const auto node_has_data = [&](int node) {
    for (const int rank : placement.ranks_of(node))
      if (rank_has_data(rank)) return true;
    return false;
  };
  equidistant(placement.node_count(), node_has_data, [&](int node) {
    for (const bool with_data : {false, true})
      for (const int rank : placement.ranks_of(node))
        if (rank_has_data(rank) == with_data) append(rank);
  });
}

}  // namespace ibcoll::allgather
