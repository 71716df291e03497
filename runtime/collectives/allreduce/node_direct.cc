// SPDX-License-Identifier: BSD-3-Clause
// Allreduce by nodes, in pieces of the vector: (1) the ranks of a node combine a piece in the node window; (2) its
// leader sends every other leader that leader's segment of it, and combines what comes for its own; (3) it sends its
// segment of the result to every other leader; (4) all ranks copy the piece out of the node window. A leader's messages
// of one phase depend on nothing that it receives in that phase. So phase 3 of one piece and phase 2 of the next one
// travel at the same time, while the ranks of the node copy the piece before these and combine the one after.
// Source: Qian, Afsahi, PAP_Direct, carried to a reduction, for phases 2 and 3. The operation must commute; every rank
// gets the same bits.
// Rounds: n/B + 2 for pieces of B bytes, with 2 (N - 1) messages per leader. Cost: the longer one of 2 (N-1) n/B alpha
// + 2 (N-1)/N n (beta + gamma) between nodes and of L n read by the leader, and the shorter one for B bytes.
#include "runtime/collectives/allreduce/allreduce.h"
#include "runtime/collectives/framework/cost_patterns.h"
#include "runtime/collectives/framework/halving.h"
#include "runtime/collectives/framework/node_reduce.h"

namespace ibcoll::allreduce::node_direct {
namespace {

constexpr uint64_t kLeastPiece = 1 << 12, kMostPiece = kReductionPiece / 2;

// A part of the vector as the leader of a node sees it, with a segment for each leader. Empty: there is no such piece.
struct LeaderPiece {
  Bytes vector;
  std::byte* landing;  // for the operands of this leader's segment
};

// The steps of one leader with pieces.
class Between {
 public:
  Between(Comm& leaders, Reduction reduction) : leaders_(leaders), reduction_(reduction) {}

  void announce_operands(const LeaderPiece& piece) const {
    for (int i = 1; i < leaders_.size(); ++i) leaders_.announce(leaders_.peer(-i), operand(piece, i));
  }
  void scatter(const LeaderPiece& piece) const {
    for (int i = 1; i < leaders_.size(); ++i) leaders_.put(leaders_.peer(i), segment(piece, leaders_.peer(i)));
  }
  // Combines what has landed.
  void combine(const LeaderPiece& piece) const {
    const Bytes own = segment(piece, leaders_.rank());
    for (int i = 1; i < leaders_.size() && !own.empty(); ++i)
      reduction_(operand(piece, i).data(), own.data(), own.size() / reduction_.element_bytes());
  }
  // Announces the results of segments that have been put: their owners send results when they have them.
  void announce_results(const LeaderPiece& piece) const {
    for (int i = 1; i < leaders_.size(); ++i) leaders_.announce(leaders_.peer(-i), segment(piece, leaders_.peer(-i)));
  }
  void gather(const LeaderPiece& piece) const {
    for (int i = 1; i < leaders_.size(); ++i) leaders_.put(leaders_.peer(i), segment(piece, leaders_.rank()));
  }
  Bytes segment(const LeaderPiece& piece, int leader) const {
    const uint64_t element = reduction_.element_bytes();
    return Segments{piece.vector.size() / element, element, leaders_.size()}.of(piece.vector, leader);
  }

 private:
  // The memory where the operand of peer(-i) lands.
  Bytes operand(const LeaderPiece& piece, int i) const {
    const uint64_t own = segment(piece, leaders_.rank()).size();
    return {piece.landing + own * static_cast<uint64_t>(i - 1), own};
  }

  Comm& leaders_;
  const Reduction reduction_;
};

// The leader's part of a round: operands of piece `before`, and results of the one before that, have been travelling,
// and `now` has been combined on the node. `now` is sent before this rank combines what has landed, so that the link is
// not idle meanwhile. What comes in the next round is announced here, a round before others send it.
Task exchange(Comm& leaders, Reduction reduction, LeaderPiece next, LeaderPiece now, LeaderPiece before) {
  const Between between(leaders, reduction);
  for (int i = 1; i < leaders.size(); ++i) {
    const int from = leaders.peer(-i);
    const uint64_t later = between.segment(now, leaders.rank()).size() + between.segment(before, from).size();
    co_await leaders.received_from(from, later);
  }
  co_await leaders.flushed();
  between.scatter(now);
  between.combine(before);
  between.gather(before);
  between.announce_operands(next);
  between.announce_results(now);
}

Task run(Comm& c, Args a) {
  const bool leads = c.node().rank() == 0;
  const uint64_t element = a.reduction.element_bytes(), bytes = std::min(a.bytes, whole_elements(a.parameter, element));
  if (a.bytes == 0) co_return;
  const uint64_t landing = bytes + static_cast<uint64_t>(c.placement().node_count()) * element;
  std::byte* const memory = leads ? c.scratch(2 * landing) : nullptr;
  if (leads && !memory) co_return;
  // Operands of pieces land in two halves of the memory, alternately.
  const auto piece = [&](uint64_t at) {
    return LeaderPiece{part(a.buffer(), at, bytes), memory + at / bytes % 2 * landing};
  };
  const auto owned = [&](Bytes of) { return NodeOwners{Segments{of.size() / element, element, 1}, 0}; };
  LeaderPiece before{}, oldest{};
  if (leads) Between(c.leaders(), a.reduction).announce_operands(piece(0));
  for (uint64_t at = 0; at < a.bytes + 2 * bytes; at += bytes) {
    const LeaderPiece now = piece(at);
    const Bytes sum = leads ? now.vector : Bytes(), whole = leads ? oldest.vector : Bytes();
    co_await reduce_on_node(c, owned(now.vector), a.reduction, a.any_order(), part(a.operand(), at, bytes), sum);
    if (leads) co_await exchange(c.leaders(), a.reduction, piece(at + bytes), now, before);
    co_await share_on_node(c, owned(oldest.vector), whole, oldest.vector);
    oldest = before;
    before = now;
  }
}

double cost_us(const Shape& s, const CostModel& m) {
  const double n = static_cast<double>(s.bytes), piece = std::clamp(n, 1.0, static_cast<double>(s.parameter));
  const CostModel leaders = model_of_leaders(s, m);
  Shape one = s;
  one.bytes = static_cast<uint64_t>(piece);
  const double segment = piece / s.nodes, others = s.nodes - 1;
  const double on_node = reduce_on_node_us(one, m, 1) + share_on_node_us(one, m, 1);
  const double between =
      leaders.message_us(0) + 2 * others * leaders.stream_us(segment) + combine_landed_us(leaders, others * segment);
  return on_node + leaders.message_us(0) + between + (std::ceil(n / piece) - 1) * std::max(on_node, between);
}

uint64_t choose(const Shape& s, const CostModel& m) { return best_piece<cost_us>(s, m, 1 << 16, kMostPiece, s.bytes); }

}  // namespace

std::span<const Algorithm> rows() {
  static constexpr Algorithm kRows[] = {
      {.collective = IBCOLL_ALLREDUCE,
       .name = "node_direct",
       .about = "node window, leaders straight to each other, in pieces; n/B 2 (N-1) alpha + 2 n beta",
       .parameter = {Parameter::Unit::kBytes, "piece", kLeastPiece, kMostPiece},
       .run = run,
       .why_not = applies_to_commutative_reductions_of_nodes,
       .choose = choose,
       .cost_us = cost_us,
       .uses_window = true}};
  return kRows;
}

}  // namespace ibcoll::allreduce::node_direct
