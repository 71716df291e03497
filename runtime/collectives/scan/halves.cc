// SPDX-License-Identifier: BSD-3-Clause
// Exscan of two ranks on one node: rank 1 gets the operand of rank 0, of which each copies one half.
// Cost: framework/pair.h.
#include "runtime/collectives/framework/pair.h"

namespace ibcoll::scan::halves {
namespace {

Task run(Comm& c, Args a) {
  if (c.rank() == 0) {
    co_await send_in_pair(c, a.operand(), half_of(a.operand()));
    co_return;
  }
  co_await receive_in_pair(c, a.buffer(), half_of(a.buffer()));
  a.reduction.single(a.recv.base, a.recv.base, a.count);
}

double cost_us(const Shape& s, const CostModel& m) { return halves_us(static_cast<double>(s.bytes), m); }

}  // namespace

std::span<const Algorithm> rows() {
  static constexpr Algorithm kRows[] = {{.collective = IBCOLL_EXSCAN,
                                         .name = "halves",
                                         .about = "two ranks: each copies half of the operand of rank 0",
                                         .run = run,
                                         .why_not = applies_to_pairs,
                                         .cost_us = cost_us,
                                         .uses_window = true}};
  return kRows;
}

}  // namespace ibcoll::scan::halves
