// SPDX-License-Identifier: BSD-3-Clause
// Scan and exscan, recursive doubling: before round k each rank has the result over itself and the 2^k - 1 ranks below
// it, or over all ranks below it where these are fewer. It sends that to rank + 2^k, and combines it with what comes
// from rank - 2^k, the lower operand first.
// Source: Thakur, Gropp, scan; Hillis, Steele 1986. Any p; operands stay in rank order, so the operation need not
// commute. Rounds: ceil(lg p). Cost: ceil(lg p) (alpha + n beta + n gamma); exscan combines twice.
#include <cmath>

#include "runtime/collectives/framework/cost_patterns.h"
#include "runtime/collectives/scan/scan.h"

namespace ibcoll::scan::recursive_doubling {
namespace {

Task run(Comm& c, Args a) {
  const bool inclusive = a.collective == IBCOLL_SCAN;
  const uint64_t piece = std::min(a.bytes, whole_elements(kReductionPiece, a.reduction.element_bytes()));
  std::byte* const memory = c.scratch(2 * piece);
  if (!memory) co_return;
  for (uint64_t at = 0; at < a.bytes; at += piece) {
    const ConstBytes operand = part(a.operand(), at, piece);
    const Bytes result = part(a.buffer(), at, piece);
    const Bytes upto = inclusive ? result : Bytes(memory + piece, operand.size());
    if (inclusive && c.rank() == 0)
      a.reduction.single(upto.data(), operand.data(), operand.size() / a.reduction.element_bytes());
    else
      c.copy(upto, operand);
    const Bytes below = inclusive ? Bytes() : result;
    co_await among(c, a.reduction, upto, below, memory);
  }
}

}  // namespace

Task among(Comm& c, Reduction reduction, Bytes upto, Bytes below, std::byte* work) {
  const uint64_t count = upto.size() / reduction.element_bytes();
  for (int distance = 1; distance < c.size(); distance *= 2) {
    const int lower = c.rank() - distance, upper = c.rank() + distance;
    if (lower >= 0) c.announce(lower, Bytes(work, upto.size()));
    if (upper < c.size()) c.put(upper, upto);
    co_await c.received();
    co_await c.flushed();
    if (lower < 0) continue;
    reduction(work, upto.data(), count);
    if (below.empty()) continue;
    if (distance == 1)
      reduction.single(below.data(), work, count);
    else
      reduction(work, below.data(), count);
  }
}

double rounds_us(const Shape& s, const CostModel& m) {
  const double n = static_cast<double>(s.bytes);
  return ceil_log2(s.p) * (m.message_us(n) + m.combines_us(2 * n)) + m.own_copies_us(n);
}

namespace {

// As in tree_us(): kPathOfCall of the rounds one after the other, in which all ranks of a core take part, and the rest
// of what the busiest rank, or core, does. In round k, p - 2^k ranks send.
double cost_us(const Shape& s, const CostModel& m) {
  const double n = static_cast<double>(s.bytes), rounds = ceil_log2(s.p);
  const TreeShape shape{s.p, rounds, rounds, rounds * s.p - (std::exp2(rounds) - 1)};
  const double work = std::max(rank_work_us(shape, m, n), core_work_us(shape, m, n));
  return cost::kPathOfCall * rounds_us(s, m) +
         (1 - cost::kPathOfCall) * (work + rounds * m.combines_us(2 * n) + m.own_copies_us(n));
}

// Ranks above the last power of two have fewer rounds.
double late_us(const Shape& s, const CostModel& m) {
  return s.p > 1 ? cost_us(s, m) * std::log2(s.p) / ceil_log2(s.p) : cost_us(s, m);
}

}  // namespace

std::span<const Algorithm> rows() {
  static constexpr auto kRows = two_rows({.collective = IBCOLL_SCAN,
                                          .name = "recursive_doubling",
                                          .about = "Thakur, Gropp; any p; ceil(lg p) (alpha + n beta + n gamma)",
                                          .run = run,
                                          .cost_us = cost_us,
                                          .late_us = late_us,
                                          .as_exchange = AsExchange::kOfTwo},
                                         IBCOLL_EXSCAN);
  return kRows;
}

}  // namespace ibcoll::scan::recursive_doubling
