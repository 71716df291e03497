// SPDX-License-Identifier: BSD-3-Clause
// The phases on a node around an exchange between nodes, for reductions: the vector of a node's ranks is cut into
// segments, and each segment has an owner. The owner combines the operands of its segment out of the node window,
// exchanges the result with other nodes, and writes it back to the window for the other ranks. With one owner, the
// leader, this is the usual composition; several share the work and the network where messages are long.
#pragma once

#include "runtime/collectives/framework/cost_patterns.h"
#include "runtime/collectives/framework/pieces.h"

namespace ibcoll {

// The owner of segment i is local rank first + i.
struct NodeOwners {
  Segments segments;
  int first = 0;

  int owner(int segment, int locals) const noexcept { return (first + segment) % locals; }
  // Which segment the local rank owns; segments.parts or more: none.
  int owned_by(int local, int locals) const noexcept { return (local - first + locals) % locals; }
};

// result = operand(0) op ... op operand(ranks - 1) over `count` elements from byte `at` of each rank's area of `area`
// bytes in the current step, in the order of the ranks. `own` stands for this rank's area.
void combine_areas(NodeWindow& window, const Reduction& reduction, std::byte* result, const std::byte* own, uint64_t at,
                   uint64_t count, uint64_t area, int steps_back = 0);
// The same of the first `ranks` ranks, of which there are some, in a step in which each rank says what it writes itself.
void combine_own_areas(NodeWindow& window, const Reduction& reduction, Bytes result, const std::byte* own, uint64_t at,
                       uint64_t area, int ranks);
// True when no element of a private operand is read after the result has replaced it. (A user's operation expects the
// upper operand where the result goes.)
bool stays(const NodeWindow& window, const Reduction& reduction, const std::byte* operand, const std::byte* result);

// Combines the operands of the node's ranks, in the order of the ranks or, with `any_order`, as they come.
// `result`: where this rank's segment goes, if it owns one; it may be where that segment of the operand is.
Task reduce_on_node(Comm& c, NodeOwners owners, Reduction reduction, bool any_order, ConstBytes operand, Bytes result);
// Copies the owners' segments to the ranks of the node whose `vector` is not empty. `own`: this rank's segment, if it
// owns one; it may be where it is in the vector.
Task share_on_node(Comm& c, NodeOwners owners, ConstBytes own, Bytes vector);

// The ranks that own this segment on all nodes, in the order of the nodes, this rank among them. On node `node` owners
// are counted from local rank `first`. On failure the collective has failed, and calls on the result have no effect.
Comm& counterparts(Comm& c, int segment, int node = 0, int first = 0);

// Microseconds of these two, for `owners` owners of s.bytes.
double reduce_on_node_us(const Shape& s, const CostModel& m, int owners);
double share_on_node_us(const Shape& s, const CostModel& m, int owners);

// The call among counterparts, where each node has `owners` owners.
Shape counterparts_of(Shape s, int owners);

// The parameter of algorithms that have owners: the number that costs least, of powers of two and the most that there
// may be. Not more than the node has cores for its ranks: owners that share a core save nothing and send more messages.
template <double (*kCost)(const Shape&, const CostModel&)>
uint64_t best_owners(const Shape& s, const CostModel& m);

// How many owners a call may have, at most `wanted`: each node has that many ranks, and the window room for an element
// of each.
inline int owners_of(uint64_t wanted, int fewest_local, uint64_t area_bytes, uint64_t element_bytes) {
  const uint64_t room = std::max<uint64_t>(area_bytes / element_bytes, 1);
  return static_cast<int>(std::clamp<uint64_t>(std::min(wanted, room), 1, static_cast<uint64_t>(fewest_local)));
}

template <double (*kCost)(const Shape&, const CostModel&)>
uint64_t best_owners(const Shape& s, const CostModel& m) {
  const auto cores = static_cast<uint64_t>(std::max(s.most_local / m.sharing, 1.0));
  const int most = owners_of(cores, s.fewest_local, s.area_bytes, s.element_bytes);
  Shape with = s;
  uint64_t best = 1;
  double lowest = 0;
  for (int owners = 1;; owners = std::min(2 * owners, most)) {
    with.parameter = static_cast<uint64_t>(owners);
    const double cost = kCost(with, m);
    if (owners == 1 || cost < lowest) best = with.parameter, lowest = cost;
    if (owners >= most) return best;
  }
}

inline const char* window_holds_no_element(const Shape& s) {
  return s.area_bytes < s.element_bytes ? "the node window is smaller than one element" : nullptr;
}

inline const char* applies_to_reductions_on_one_node(const Shape& s) {
  const char* const reason = applies_on_one_node(s);
  return reason ? reason : window_holds_no_element(s);
}

inline const char* applies_to_reductions_of_nodes(const Shape& s) {
  if (s.nodes == 1) return "all ranks of the team share one node's memory";
  if (s.area_bytes == 0) return "no two ranks of the team share a node";
  if (const char* const reason = window_holds_no_element(s)) return reason;
  if (!s.commutative && !s.nodes_in_rank_order)
    return "the operation does not commute, and the ranks of a node are not neighbours";
  return nullptr;
}

inline const char* applies_to_commutative_reductions_of_nodes(const Shape& s) {
  const char* const reason = needs_commutative(s);
  return reason ? reason : applies_to_reductions_of_nodes(s);
}

}  // namespace ibcoll
