// SPDX-License-Identifier: BSD-3-Clause
// Scan and exscan, linear: rank r gets the result over ranks 0 to r - 1 from rank r - 1, and passes on that over 0 to
// r. Long vectors move in pieces, one after the other.
// Rounds: p - 1 + pieces - 1. Cost: that many times alpha + b beta + b gamma for pieces of b bytes.
#include "runtime/collectives/framework/cost_patterns.h"
#include "runtime/collectives/framework/pieces.h"

namespace ibcoll::scan::linear {
namespace {

constexpr uint64_t kPiece = 1 << 17;  // one travels further while the next one follows

Task run(Comm& c, Args a) {
  const bool inclusive = a.collective == IBCOLL_SCAN;
  const uint64_t element = a.reduction.element_bytes(), piece = std::min(a.bytes, whole_elements(kPiece, element));
  std::byte* const memory = c.scratch(2 * piece);
  if (!memory) co_return;
  for (uint64_t at = 0; at < a.bytes; at += piece) {
    const ConstBytes operand = part(a.operand(), at, piece);
    const Bytes below(memory, operand.size()), upto(memory + piece, operand.size());
    const uint64_t count = operand.size() / element;
    if (c.rank() == 0) {
      a.reduction.single(upto.data(), operand.data(), count);
    } else {
      c.copy(upto, operand);
      c.announce(c.rank() - 1, below);
      co_await c.received();
      a.reduction(below.data(), upto.data(), count);
    }
    if (c.rank() + 1 < c.size()) c.put(c.rank() + 1, upto);
    co_await c.flushed();
    if (inclusive)
      c.copy(part(a.buffer(), at, piece), upto);
    else if (c.rank() > 0)
      a.reduction.single(part(a.buffer(), at, piece).data(), below.data(), count);
  }
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
