// SPDX-License-Identifier: BSD-3-Clause
// Allreduce in three phases: (1) the ranks of a node combine their operands in the node window, (2) the leaders of the
// nodes combine the results between nodes, (3) all ranks copy the result out of the node window. With k leaders per
// node each owns a segment: a reduce-scatter on the node, k exchanges of counterparts at once, an allgather on the
// node.
// Sources: Thakur, Gropp for phase 2, by recursive doubling (short), reduce-scatter and allgather, ring, or on a
// circulant graph (long); phases 1 and 3 as in Qian, Afsahi, Shm_Direct.
// Operands stay in rank order where the ranks of each node are neighbours; elsewhere the operation must commute.
// Cost: that of phase 2 on N nodes for n / k bytes, two steps of the node window, and 4 copies of n on the node.
#include "runtime/collectives/allreduce/allreduce.h"
#include "runtime/collectives/framework/node_reduce.h"

namespace ibcoll::allreduce::node {
namespace {

using Cost = double (*)(const Shape&, const CostModel&);

// Least bytes of a piece of a long vector: shorter ones would take too many rounds between nodes.
constexpr uint64_t kLeastPiece = 1 << 19;

NodeOwners owners_of_piece(Bytes piece, uint64_t element, int owners) {
  return {Segments{piece.size() / element, element, owners}, 0};
}

Task share(Comm& c, Bytes piece, uint64_t element, int owners) {
  const NodeOwners owned = owners_of_piece(piece, element, owners);
  const int own = c.node().rank();
  // Not within the co_await: g++ 12 evaluates both sides of a conditional there.
  const Bytes segment = own < owners ? owned.segments.of(piece, own) : Bytes();
  co_await share_on_node(c, owned, segment, piece);
}

// While one piece of a long vector travels between nodes, the ranks of the node write the next one and read the one
// before.
template <Among kAmong>
Task run(Comm& c, Args a) {
  const uint64_t element = a.reduction.element_bytes();
  const int owners = owners_of(a.parameter, c.placement().fewest_local(), c.node().area_bytes(), element);
  const int own = c.node().rank();
  const uint64_t piece =
      std::min(a.bytes, whole_elements(std::clamp(a.bytes / 4, kLeastPiece, kReductionPiece), element));
  std::byte* const work = own < owners ? c.scratch(work_bytes(a, piece, c.placement().node_count())) : nullptr;
  if (own < owners && !work) co_return;
  Comm& others = own < owners ? counterparts(c, own) : c;
  Bytes before;  // the piece before, which the node's ranks have not copied yet
  for (uint64_t at = 0; at < a.bytes; at += piece) {
    const Bytes result = part(a.buffer(), at, piece);
    const NodeOwners owned = owners_of_piece(result, element, owners);
    const Bytes segment = own < owners ? owned.segments.of(result, own) : Bytes();
    co_await reduce_on_node(c, owned, a.reduction, a.any_order(), part(a.operand(), at, piece), segment);
    if (!before.empty()) co_await share(c, before, element, owners);
    if (!segment.empty()) co_await kAmong(others, in_place_call(a, segment), work);
    before = result;
  }
  if (!before.empty()) co_await share(c, before, element, owners);
}

template <Cost kCost>
double cost_us(const Shape& s, const CostModel& m) {
  const int owners = owners_of(s.parameter, s.fewest_local, s.area_bytes, s.element_bytes);
  return reduce_on_node_us(s, m, owners) + kCost(counterparts_of(s, owners), model_of_leaders(s, m, owners)) +
         share_on_node_us(s, m, owners);
}

template <Among kAmong, Cost kCost>
constexpr Algorithm row(const char* name, const char* about, Order order) {
  return {.collective = IBCOLL_ALLREDUCE,
          .name = name,
          .about = about,
          .parameter = {Parameter::Unit::kCount, "leaders", 1, 1024},
          .run = run<kAmong>,
          .why_not = order == Order::kOwn ? applies_to_commutative_reductions_of_nodes : applies_to_reductions_of_nodes,
          .choose = best_owners<cost_us<kCost>>,
          .cost_us = cost_us<kCost>,
          .uses_window = true,
          .order = order};
}

}  // namespace

std::span<const Algorithm> rows() {
  static constexpr Algorithm kRows[] = {
      row<recursive_doubling::among, recursive_doubling::cost_us>(
          "node_recursive_doubling", "node window, leaders by recursive doubling; lg N (alpha + n beta)",
          Order::kNodes),
      row<rabenseifner::among, rabenseifner::cost_us>(
          "node_rabenseifner", "node window, leaders by rabenseifner; 2 lg N alpha + 2 n beta", Order::kNodes),
      row<ring::among, ring::cost_us>("node_ring", "node window, leaders in a ring; 2 (N-1) alpha + 2 n beta",
                                      Order::kOwn),
      row<circulant::among, circulant::cost_us>(
          "node_circulant", "node window, leaders on a circulant graph; 2 ceil(lg N) alpha + 2 n beta", Order::kOwn),
      row<pap_direct::among, pap_direct::cost_us>(
          "node_pap_direct", "node window, leaders by pap_direct; 2 alpha + 2 n beta", Order::kNodes)};
  return kRows;
}

}  // namespace ibcoll::allreduce::node
