// SPDX-License-Identifier: BSD-3-Clause
// Reduce-scatter by nodes, in pieces of all blocks: (1) the ranks of a node combine a piece in the node window; (2) its
// leader sends every other leader the blocks of that leader's node, and combines what comes for its own; (3) each rank
// copies its block out of the node window. A leader's messages of one piece depend on nothing that it receives. So
// while they travel, the ranks of the node combine the next piece: the link is idle for the first piece of a call only.
// Source: Thakur, Gropp, pairwise exchange, for phase 2. The operation must commute.
// Rounds: n/B + 1 for n bytes of all blocks in pieces of B, with N - 1 messages per leader. Cost: the longer one of
// (N-1) n/B alpha + (N-1)/N n (beta + gamma) between nodes and of L n read by the leader, and the shorter one for B
// bytes.
#include "runtime/collectives/framework/cost_patterns.h"
#include "runtime/collectives/framework/halving.h"
#include "runtime/collectives/reduce_scatter/node.h"

namespace ibcoll::reduce_scatter::node_direct {
namespace {

constexpr uint64_t kLeastPiece = 1 << 12, kMostPiece = kReductionPiece / 2;

// [at, at + cell) of every block, as the leader of a node sees it.
struct LeaderPiece {
  Packed blocks;
  uint64_t own;        // bytes of the blocks of this node's ranks
  std::byte* landing;  // as many bytes for each other node

  std::byte* operand(int i) const { return landing + own * static_cast<uint64_t>(i - 1); }
};

void announce(Comm& leaders, const LeaderPiece& piece) {
  for (int i = 1; i < leaders.size(); ++i) leaders.announce(leaders.peer(-i), {piece.operand(i), piece.own});
}

// The leader's part of a round: piece `before` has been travelling, and `now` has been combined on the node. `now` is
// sent before this rank combines what has landed, so that the link is not idle meanwhile. `next` is announced a round
// before others send it.
Task exchange(Comm& leaders, Reduction reduction, LeaderPiece next, LeaderPiece now, LeaderPiece before) {
  for (int i = 1; i < leaders.size(); ++i) co_await leaders.received_from(leaders.peer(-i), now.own);
  co_await leaders.flushed();
  for (int i = 1; i < leaders.size(); ++i) leaders.put(leaders.peer(i), now.blocks[leaders.peer(i)]);
  for (int i = 1; i < leaders.size() && before.own > 0; ++i)
    reduction(before.operand(i), before.blocks[leaders.rank()].data(), before.own / reduction.element_bytes());
  announce(leaders, next);
}

// The last piece is empty.
Task run(Comm& c, Args a) {
  const Placement& nodes = c.placement();
  const int here = nodes.node_of(c.rank()), count = nodes.node_count();
  const bool leads = c.node().rank() == 0;
  const uint64_t longest = longest_block(a, c.size()), element = a.reduction.element_bytes();
  if (longest == 0) co_return;
  const uint64_t cell = std::min(longest, whole_elements(a.parameter / static_cast<uint64_t>(c.size()), element));
  const uint64_t most = node::packed_bytes(a, c.size(), cell), ends = static_cast<uint64_t>(count) + 1;
  const uint64_t landing = leads ? cell * nodes.ranks_of(here).size() * static_cast<uint64_t>(count - 1) : 0;
  auto* const starts = c.scratch_array<uint64_t>(2 * ends);
  std::byte* const memory = c.scratch(2 * (most + landing));
  if (!starts || !memory) co_return;
  std::fill_n(starts, 2 * ends, 0);
  const auto half = [&](uint64_t at) { return at / cell % 2; };  // of the memory: pieces alternate between two
  const auto piece = [&](uint64_t at) {
    uint64_t own = 0;
    for (const int rank : nodes.ranks_of(here)) own += part(a.send[rank], at, cell).size();
    const Packed blocks{memory + half(at) * most, starts + half(at) * ends, count};
    return LeaderPiece{blocks, own, memory + 2 * most + half(at) * landing};
  };
  LeaderPiece before{{memory, starts, count}, 0, nullptr};  // none
  if (leads) announce(c.leaders(), piece(0));
  for (uint64_t at = 0; at < longest + cell; at += cell) {
    const LeaderPiece now = piece(at);
    node::pack(a, nodes, at, cell, now.blocks.base, starts + half(at) * ends);
    co_await node::combine_on_node(c, a.reduction, a.any_order(), now.blocks);
    if (leads) co_await exchange(c.leaders(), a.reduction, piece(at + cell), now, before);
    if (at > 0) co_await node::hand_out(c, a, at - cell, cell, before.blocks[here]);
    before = now;
  }
}

double cost_us(const Shape& s, const CostModel& m) {
  const double n = static_cast<double>(s.total), piece = std::clamp(n, 1.0, static_cast<double>(s.parameter));
  const CostModel leaders = model_of_leaders(s, m);
  Shape one = s;
  one.bytes = static_cast<uint64_t>(piece);
  const double blocks = piece / s.nodes, others = s.nodes - 1;
  const double on_node = m.own_copies_us(piece) + reduce_on_node_us(one, m, 1) + m.step_us(2) + 2 * m.copy_us * blocks;
  const double between =
      leaders.message_us(0) + others * leaders.stream_us(blocks) + combine_landed_us(leaders, others * blocks);
  return on_node + between + (std::ceil(n / piece) - 1) * std::max(on_node, between);
}

uint64_t choose(const Shape& s, const CostModel& m) { return best_piece<cost_us>(s, m, 1 << 16, kMostPiece, s.total); }

constexpr Algorithm row(ibcoll_collective_t collective) {
  return {.collective = collective,
          .name = "node_direct",
          .about = "node window, leaders straight to each other, in pieces; n/B (N-1) alpha + n beta",
          .parameter = {Parameter::Unit::kBytes, "piece", kLeastPiece, kMostPiece},
          .run = run,
          .why_not = applies_to_commutative_reductions_of_nodes,
          .choose = choose,
          .cost_us = cost_us,
          .uses_window = true};
}

}  // namespace

std::span<const Algorithm> rows() {
  static constexpr Algorithm kRows[] = {row(IBCOLL_REDUCE_SCATTER), row(IBCOLL_REDUCE_SCATTER_BLOCK)};
  return kRows;
}

}  // namespace ibcoll::reduce_scatter::node_direct
