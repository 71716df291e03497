// SPDX-License-Identifier: BSD-3-Clause
// Scan and exscan on one node, from rank to rank through the node window, piece by piece: a rank takes the result over
// the ranks below it from the area of the next lower rank, combines it with its operand, and writes the result up to
// itself into its own area. Every rank waits for the next lower one only, so pieces, and calls in a row, overlap.
// Operands stay in rank order, so the operation need not commute.
// Source: the linear algorithm of Open MPI; Sanders, Traff 2006.
// Steps: L - 1 + n / B for pieces of B bytes. Cost: n read, n combined and n written by each rank, while algorithm node
// has L n read by the last one.
#include "runtime/collectives/framework/cost_patterns.h"
#include "runtime/collectives/framework/node_reduce.h"

namespace ibcoll::scan::shm_chain {
namespace {

// Not the whole area, so that a rank works on one piece while the next one works on the piece before.
uint64_t piece_bytes(uint64_t bytes, uint64_t area_bytes, uint64_t element, bool crowded) {
  return std::min(bytes, whole_elements(window_piece(bytes, area_bytes, crowded), element));
}

// One piece. below: the result over the ranks below this one; nullptr on the first rank. upto: where that up to this
// rank goes, for the next one; nullptr on the last rank. The operand may be where the result is.
void combine_inclusive(NodeWindow& w, const Reduction& reduction, const std::byte* below, ConstBytes operand,
                       Bytes result, std::byte* upto) {
  const uint64_t count = operand.size() / reduction.element_bytes();
  if (below)
    reduction.combine(below, operand.data(), result.data(), count);
  else
    reduction.single(result.data(), operand.data(), count);
  if (upto) w.write(Bytes(upto, result.size()), result, w.rank() + 1);
}

void combine_exclusive(const Reduction& reduction, const std::byte* below, ConstBytes operand, Bytes result,
                       std::byte* upto) {
  const uint64_t count = operand.size() / reduction.element_bytes();
  if (upto && below)
    reduction.combine(below, operand.data(), upto, count);
  else if (upto)
    reduction.single(upto, operand.data(), count);
  if (below) Comm::copy(result, ConstBytes(below, result.size()));
}

bool is_first(const NodeWindow& w) { return w.rank() == 0; }
bool is_last(const NodeWindow& w) { return w.rank() + 1 == w.size(); }

// Once the next lower rank has published.
void combine(NodeWindow& w, const Args& a, ConstBytes operand, Bytes result) {
  const std::byte* const below = is_first(w) ? nullptr : w.own_area(w.rank() - 1, operand.size());
  std::byte* const upto = is_last(w) ? nullptr : w.own_area(w.rank(), operand.size());
  if (a.collective == IBCOLL_SCAN)
    combine_inclusive(w, a.reduction, below, operand, result, upto);
  else
    combine_exclusive(a.reduction, below, operand, result, upto);
}

OneStep one_step(const Args& a, const NodeWindow& w) {
  if (a.bytes == 0 || piece_bytes(a.bytes, w.area_bytes(), a.reduction.element_bytes(), w.crowded()) < a.bytes)
    return {};
  OneStep step{.kind = OneStep::Kind::kOwn, .bytes = is_last(w) ? 0 : a.bytes};
  if (is_first(w)) {
    step.write = [](NodeWindow& window, const Args& args) { combine(window, args, args.operand(), args.buffer()); };
    return step;
  }
  step.first = w.rank() - 1, step.end = w.rank();
  step.publishes_last = true;
  step.finish = [](NodeWindow& window, const Args& args) {
    combine(window, args, args.operand(), args.buffer());
    return Difference();
  };
  return step;
}

Task run(Comm& c, Args a) {
  NodeWindow& w = c.node();
  const uint64_t piece = piece_bytes(a.bytes, w.area_bytes(), a.reduction.element_bytes(), w.crowded());
  for (uint64_t at = 0; at < a.bytes; at += piece) {
    const ConstBytes operand = part(a.operand(), at, piece);
    const uint64_t written = is_last(w) ? 0 : operand.size();
    co_await c.next_own_step(written);
    if (!is_first(w)) {
      c.publish_part();  // nothing but the digest of the call, to which that of the lower rank is compared
      co_await c.published(w.rank() - 1);
    }
    combine(w, a, operand, part(a.buffer(), at, piece));
    c.publish();
  }
}

const char* why_not(const Shape& s) {
  const char* const reason = applies_on_one_node(s);
  return reason ? reason : window_holds_no_element(s);
}

// As in tree_us(): kPathOfCall of the steps on the way from the first rank to the last one count, and the rest of one
// rank's. A time slice for each rank of a core takes a piece through all of them. A rank publishes twice in a step.
double cost_us(const Shape& s, const CostModel& m) {
  const double n = static_cast<double>(s.bytes);
  const double piece = std::min(n, static_cast<double>(window_piece(s.bytes, s.area_bytes, s.crowded)));
  const double pieces = n > piece ? std::ceil(n / piece) : 1;
  const double steps = 1 + cost::kPathOfCall * std::max(0.0, s.p / m.sharing - 2);
  return steps * (m.step_us(3) + m.copy_us * piece) + m.pipelined_steps_us(pieces - 1) + m.copies_us(n) +
         m.own_copies_us(n);
}

constexpr Algorithm row(ibcoll_collective_t collective) {
  return {.collective = collective,
          .name = "shm_chain",
          .about = "from rank to rank through the node window, in pieces; (p-1) (step + B beta) + n beta",
          .run = run,
          .why_not = why_not,
          .cost_us = cost_us,
          .uses_window = true,
          .one_step = one_step};
}

}  // namespace

std::span<const Algorithm> rows() {
  static constexpr Algorithm kRows[] = {row(IBCOLL_SCAN), row(IBCOLL_EXSCAN)};
  return kRows;
}

}  // namespace ibcoll::scan::shm_chain
