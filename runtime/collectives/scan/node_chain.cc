// SPDX-License-Identifier: BSD-3-Clause
// Scan and exscan along a chain of nodes whose ranks are neighbours, piece by piece: the first rank of a node receives
// the result over all nodes before, combines it with its operand, and writes that into the node window, where the
// others have written theirs. Each rank combines what the lower ones of its node have written, and the last one sends
// the result up to itself to the next node. Every rank waits for lower ranks only, so calls in a row overlap as far as
// the lines of the window (128 calls), its short areas (16) and the credit of eager messages go. Operands stay in rank
// order, so the operation need not commute.
// Source: the linear algorithm of Open MPI and of Sanders, Traff 2006, with nodes in the place of ranks.
// Rounds: N - 2 + n / B for pieces of B bytes. Cost: (N - 2 + n / B) (alpha + B beta), a step of the node window for
// each piece, and L n read by the last of L ranks.
#include "runtime/collectives/framework/cost_patterns.h"
#include "runtime/collectives/framework/node_reduce.h"

namespace ibcoll::scan::node_chain {
namespace {

constexpr uint64_t kLeastPiece = 256, kMostPiece = uint64_t{1} << 24;

// One rank's neighbours in the chain: the first rank of a node receives from the rank before it, the last one sends to
// the next rank. -1: none.
struct Link {
  explicit Link(Comm& c) noexcept {
    const NodeWindow& w = c.node();
    first = w.rank() == 0, last = w.rank() + 1 == w.size();
    if (first) before = c.rank() - 1;
    if (last && c.rank() + 1 < c.size()) next = c.rank() + 1;
  }
  bool first, last;
  int before = -1, next = -1;
};

// On a rank with lower ones on its node, whose operands come from the window: the one right below first, that of the
// first rank, which has waited for other nodes, last. result: over all of them, and `own` if it is not nullptr.
Task combine_lower(Comm& c, Reduction reduction, const std::byte* own, Bytes result) {
  NodeWindow& w = c.node();
  const uint64_t count = result.size() / reduction.element_bytes();
  for (int i = w.rank() - 1; i >= 0; --i) {
    co_await c.published(i);
    const std::byte* const operand = w.own_area(i, result.size());
    if (i < w.rank() - 1)
      reduction(operand, result.data(), count);
    else if (own)
      reduction.combine(operand, own, result.data(), count);
    else
      reduction.single(result.data(), operand, count);
  }
}

// The part of a vector that the ranks of one chain send as one message. below: gets the result over the ranks below
// this one; upto: that up to this one. One of them is what the caller asks for, the other one is scratch memory, and
// the operand may be where the result goes.
Task pass(Comm& c, Args a, uint64_t piece, ConstBytes operand, Bytes below, Bytes upto) {
  const Link link(c);
  NodeWindow& w = c.node();
  const bool inclusive = a.collective == IBCOLL_SCAN;
  const uint64_t total = operand.size(), element = a.reduction.element_bytes();
  if (c.rank() == 0)
    a.reduction.single(upto.data(), operand.data(), total / element);
  else if (link.first || (!inclusive && link.next >= 0))
    c.copy(upto, operand);
  if (link.before >= 0) c.announce(link.before, below);
  for (uint64_t at = 0; at < total; at += piece) {
    const ConstBytes own = part(operand, at, piece);
    const Bytes lower = part(below, at, piece), all = part(upto, at, piece);
    const uint64_t n = own.size(), written = link.last ? 0 : n;
    co_await c.next_own_step(written);
    if (link.before >= 0) {
      co_await c.received_from(link.before, total - at - n);
      a.reduction(lower.data(), all.data(), n / element);
    }
    if (!link.last) w.write(Bytes(w.own_area(w.rank(), n), n), link.first ? ConstBytes(all) : own);
    c.publish();
    if (!link.first && inclusive) co_await combine_lower(c, a.reduction, own.data(), all);
    if (!link.first && !inclusive) co_await combine_lower(c, a.reduction, nullptr, lower);
    if (link.next < 0) continue;
    if (!inclusive && !link.first) a.reduction(lower.data(), all.data(), n / element);
    c.put_piece(link.next, all, total);
  }
  co_await c.flushed();
}

Task run(Comm& c, Args a) {
  const uint64_t element = a.reduction.element_bytes();
  const uint64_t most = std::min(a.bytes, whole_elements(kReductionPiece, element));
  const uint64_t piece = whole_elements(std::min(a.parameter, c.node().area_bytes()), element);
  std::byte* const memory = c.scratch(most);
  if (!memory) co_return;
  for (uint64_t at = 0; at < a.bytes; at += most) {
    const ConstBytes operand = part(a.operand(), at, most);
    const Bytes result = part(a.buffer(), at, most), other(memory, result.size());
    if (a.collective == IBCOLL_SCAN)
      co_await pass(c, a, piece, operand, other, result);
    else
      co_await pass(c, a, piece, operand, result, other);
  }
}

const char* why_not(const Shape& s) {
  if (const char* const reason = applies_to_reductions_of_nodes(s)) return reason;
  return s.nodes_in_rank_order ? nullptr : "the ranks of a node are not neighbours";
}

// As in tree_us(): kPathOfCall of the steps on the way from the first rank to the last one count, and the rest of one
// node's.
double cost_us(const Shape& s, const CostModel& m) {
  const auto n = static_cast<double>(s.bytes), piece = static_cast<double>(std::min(s.parameter, s.area_bytes));
  const double pieces = n > piece ? std::ceil(n / piece) : 1;
  const TreeShape chain{s.nodes, s.nodes - 1.0, 1, s.nodes - 1.0};
  const double on_node = m.copies_us(n) + m.shared_copies_us(n * (s.most_local + 1) / 2);
  const double steps = cost::kPathOfCall * s.nodes + 1 - cost::kPathOfCall;
  return tree_us(chain, model_of_leaders(s, m), n, piece) + steps * m.step_us(s.most_local) +
         m.pipelined_steps_us(pieces - 1) + on_node;
}

uint64_t choose(const Shape& s, const CostModel& m) {
  return best_piece<cost_us>(s, m, 4096, std::max(s.area_bytes, kLeastPiece), s.bytes);
}

constexpr Algorithm row(ibcoll_collective_t collective) {
  return {.collective = collective,
          .name = "node_chain",
          .about = "chain of nodes in pieces, node window inside; (N-2 + n/B) (alpha + B beta)",
          .parameter = {Parameter::Unit::kBytes, "piece", kLeastPiece, kMostPiece},
          .run = run,
          .why_not = why_not,
          .choose = choose,
          .cost_us = cost_us,
          .uses_window = true};
}

}  // namespace

std::span<const Algorithm> rows() {
  static constexpr Algorithm kRows[] = {row(IBCOLL_SCAN), row(IBCOLL_EXSCAN)};
  return kRows;
}

}  // namespace ibcoll::scan::node_chain
