// SPDX-License-Identifier: BSD-3-Clause
// Scan and exscan, linear: rank r gets the result over ranks 0 to r - 1 from rank r - 1, and passes on that over 0 to
// r. Long vectors move in pieces, one after the other.
// Rounds: p - 1 + pieces - 1. Cost: that many times alpha + b beta + b gamma for pieces of b bytes.
#include "runtime/collectives/framework/cost_patterns.h"
#include "runtime/collectives/framework/pieces.h"

namespace ibcoll::scan::linear {
namespace {

constexpr uint64_t kPiece = 1 << 17;  // one travels further while the next one follows

// Two ranks of an exscan combine nothing, so there is nothing to overlap.
uint64_t piece_bytes(const Comm& c, const Args& a) {
  const bool whole = a.collective == IBCOLL_EXSCAN && c.size() == 2;
  return whole ? a.bytes : std::min(a.bytes, whole_elements(kPiece, a.reduction.element_bytes()));
}

// Rank 0 sends its operand. A logical scan sends its result instead: in place, that overwrites the operand.
Task send_first(Comm& c, Args a, uint64_t piece) {
  const bool inclusive = a.collective == IBCOLL_SCAN, as_it_is = !inclusive || a.reduction.single_is_operand();
  for (uint64_t at = 0; at < a.bytes; at += piece) {
    const ConstBytes operand = part(a.operand(), at, piece);
    if (as_it_is && c.size() > 1) c.put(1, operand);
    if (!inclusive) continue;
    const Bytes result = part(a.buffer(), at, piece);
    a.reduction.single(result.data(), operand.data(), operand.size() / a.reduction.element_bytes());
    if (!as_it_is && c.size() > 1) c.put(1, result);
  }
  co_await c.flushed();
}

// The last rank of an exscan: what it gets is its result.
Task receive_last(Comm& c, Args a, uint64_t piece) {
  for (uint64_t at = 0; at < a.bytes; at += piece) c.announce(c.rank() - 1, part(a.buffer(), at, piece));
  co_await c.received();
  a.reduction.single(a.recv.base, a.recv.base, a.count);
}

Task run(Comm& c, Args a) {
  const bool inclusive = a.collective == IBCOLL_SCAN, last = c.rank() + 1 == c.size();
  const uint64_t element = a.reduction.element_bytes(), piece = piece_bytes(c, a);
  if (c.rank() == 0) {
    co_await send_first(c, a, piece);
    co_return;
  }
  if (last && !inclusive) {
    co_await receive_last(c, a, piece);
    co_return;
  }
  std::byte* const memory = c.scratch(2 * piece);
  if (!memory) co_return;
  for (uint64_t at = 0; at < a.bytes; at += piece) {
    const ConstBytes operand = part(a.operand(), at, piece);
    const Bytes result = part(a.buffer(), at, piece), below(memory, operand.size());
    const Bytes upto = inclusive ? result : Bytes(memory + piece, operand.size());
    c.announce(c.rank() - 1, below);
    co_await c.received();
    co_await c.flushed();  // of the piece before
    a.reduction.combine(below.data(), operand.data(), upto.data(), operand.size() / element);
    if (!inclusive) a.reduction.single(result.data(), below.data(), operand.size() / element);
    if (!last) c.put(c.rank() + 1, upto);
  }
  co_await c.flushed();
}

// As in tree_us(): kPathOfCall of the steps on the way from the first rank to the last one count, and the rest of one
// rank's.
double cost_us(const Shape& s, const CostModel& m) {
  const auto n = static_cast<double>(s.bytes), piece = std::clamp(n, 1.0, static_cast<double>(kPiece));
  const TreeShape chain{s.p, s.p - 1.0, 1, s.p - 1.0};
  const double steps = std::max(1.0, n / piece) + cost::kPathOfCall * (s.p - 2);
  return tree_us(chain, m, n, piece) + steps * (m.own_copies_us(2 * piece) + m.combines_us(piece));
}

// The ranks above a late one wait.
double late_us(const Shape& s, const CostModel& model) {
  const CostModel m = model_of_late(model);
  const auto n = static_cast<double>(s.bytes), piece = std::clamp(n, 1.0, static_cast<double>(kPiece));
  return (s.p - 1) * (m.message_us(piece) + m.combines_us(piece)) / 2 +
         std::max(1.0, n / piece) * (m.own_copies_us(2 * piece) + m.combines_us(piece));
}

}  // namespace

std::span<const Algorithm> rows() {
  static constexpr auto kRows =
      two_rows({.collective = IBCOLL_SCAN,
                .name = "linear",
                .about = "from rank to rank, long vectors in pieces; (p-1) (alpha + n beta + n gamma)",
                .run = run,
                .cost_us = cost_us,
                .late_us = late_us,
                .as_exchange = AsExchange::kOfTwo},
               IBCOLL_EXSCAN);
  return kRows;
}

}  // namespace ibcoll::scan::linear
