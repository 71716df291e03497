// SPDX-License-Identifier: BSD-3-Clause
// Broadcast, chain: the message goes from rank to rank in pieces of B bytes; a rank sends a piece while it receives the
// next one. Ranks of a node are neighbours in the chain, so each link between nodes carries the message once.
// Source: the pipelined chain of e.g. Traeff, Ripke, Siebert, "A Pipelined Algorithm for Large, Irregular All-gather
// Problems", section 2.
// Rounds: p - 2 + n / B. Cost: (p - 2 + n / B) (alpha + B beta).
#include "runtime/collectives/bcast/trees.h"
#include "runtime/collectives/framework/node_order.h"

namespace ibcoll::bcast::chain {
namespace {

constexpr uint64_t kLeastPiece = 256, kMostPiece = uint64_t{1} << 24;

Task run(Comm& team, Args a) {
  const int* const order = ranks_by_node(team, a.root);
  if (!order) co_return;
  Comm& c = team.among(std::span(order, static_cast<size_t>(team.size())));
  const int before = c.rank() - 1, next = c.rank() + 1;
  if (before >= 0) c.announce(before, a.buffer());
  for (uint64_t at = 0; at < a.bytes; at += a.parameter) {
    const Bytes piece = part(a.buffer(), at, a.parameter);
    if (before >= 0) co_await c.received_from(before, a.bytes - at - piece.size());
    if (next < c.size()) c.put_piece(next, piece, a.bytes);
  }
  co_await c.flushed();
}

double cost_us(const Shape& s, const CostModel& m) {
  return tree_us(Chain::shape(s.p, 1), m, static_cast<double>(s.bytes), static_cast<double>(s.parameter));
}

double late_us(const Shape& s, const CostModel& m) {
  return late_tree_us(Chain::height(s.p, 1), 1, m, static_cast<double>(s.bytes), static_cast<double>(s.parameter));
}

uint64_t choose(const Shape& s, const CostModel& m) { return best_piece<cost_us>(s, m, 4096, kMostPiece, s.bytes); }

}  // namespace

std::span<const Algorithm> rows() {
  static constexpr Algorithm kRows[] = {{.collective = IBCOLL_BCAST,
                                         .name = "chain",
                                         .about = "pipelined in pieces of B bytes; (p-2 + n/B) (alpha + B beta)",
                                         .parameter = {Parameter::Unit::kBytes, "piece", kLeastPiece, kMostPiece},
                                         .run = run,
                                         .choose = choose,
                                         .cost_us = cost_us,
                                         .late_us = late_us}};
  return kRows;
}

}  // namespace ibcoll::bcast::chain
