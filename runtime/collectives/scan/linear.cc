// SPDX-License-Identifier: BSD-3-Clause
// Scan and exscan, linear: rank r gets the result over ranks 0 to r - 1 from rank r - 1, and passes on that over 0 to r.
// Rounds: p - 1. Cost: (p - 1) (alpha + n beta + n gamma).
#include "runtime/collectives/framework/algorithm.h"

namespace ibcoll::scan::linear {
namespace {

Task run(Comm& c, Args a) {
  const bool inclusive = a.collective == IBCOLL_SCAN;
  const ConstBytes operand = a.operand();
  std::byte* const memory = c.scratch(2 * a.bytes);
  if (!memory) co_return;
  const Bytes below(memory, a.bytes), upto(memory + a.bytes, a.bytes);
  if (c.rank() == 0) {
    a.reduction.single(upto.data(), operand.data(), a.count);
  } else {
    c.copy(upto, operand);
    c.announce(c.rank() - 1, below);
    co_await c.received();
    if (a.bytes > 0) a.reduction(below.data(), upto.data(), a.count);
  }
  if (c.rank() + 1 < c.size()) c.put(c.rank() + 1, upto);
  co_await c.flushed();
  if (inclusive)
    c.copy(a.buffer(), upto);
  else if (c.rank() > 0)
    c.copy(a.buffer(), below);
}

double cost_us(const Shape& s, const CostModel& m) {
  const double n = static_cast<double>(s.bytes);
  return (s.p - 1) * m.message_us(n) + m.own_copies_us(3 * n);
}

constexpr const char* kAbout = "from rank to rank; (p-1) (alpha + n beta + n gamma)";

}  // namespace

std::span<const Algorithm> rows() {
  static constexpr Algorithm kRows[] = {
      {.collective = IBCOLL_SCAN, .name = "linear", .about = kAbout, .run = run, .cost_us = cost_us},
      {.collective = IBCOLL_EXSCAN, .name = "linear", .about = kAbout, .run = run, .cost_us = cost_us}};
  return kRows;
}

}  // namespace ibcoll::scan::linear
