// SPDX-License-Identifier: BSD-3-Clause
// Allreduce, recursive doubling: in round k, ranks at distance 2^k exchange and combine their partial results. When p is
// no power of two, the first 2 (p - 2^floor(lg p)) ranks pair up before, and hand the result back after.
// Source: Thakur, Gropp, allreduce. Any p; operands stay in rank order, so the operation need not commute.
// Rounds: floor(lg p) (+ 2). Cost: lg p (alpha + n beta + n gamma).
#include <bit>

#include "runtime/collectives/framework/algorithm.h"

namespace ibcoll::allreduce::recursive_doubling {
namespace {

// result = theirs op result, or result op theirs when they come from higher ranks. Both partners in that order, also where the
// operation commutes: which of two NaNs a sum keeps depends on their places.
void combine(Comm& c, const Args& a, std::byte* result, std::byte* theirs, bool from_lower) {
  if (from_lower) {
    a.reduction(theirs, result, a.count);
  } else if (a.reduction.result_may_replace_lower()) {
    a.reduction.combine(result, theirs, result, a.count);
  } else if (a.reduction.op->commutative) {  // as the user says
    a.reduction(theirs, result, a.count);
  } else {
    a.reduction(result, theirs, a.count);
    c.copy(Bytes(result, a.bytes), ConstBytes(theirs, a.bytes));
  }
}

Task run(Comm& c, Args a) {
  const int p = c.size(), rank = c.rank();
  const int core = static_cast<int>(std::bit_floor(static_cast<unsigned>(p)));
  const int paired = p - core;  // pairs that act as one rank
  const Bytes result(a.recv.base, a.bytes);
  if (p == 1) a.reduction.single(a.recv.base, a.in_place ? a.recv.base : a.send.base, a.count);
  if (p == 1 || a.bytes == 0) co_return;
  if (!a.in_place) c.copy(result, ConstBytes(a.send.base, a.bytes));

  if (rank < 2 * paired && rank % 2 == 0) {  // hands its data to rank + 1 and gets the result from there
    c.put(rank + 1, result);
    co_await c.flushed();
    c.announce(rank + 1, result);
    co_await c.received();
    co_return;
  }
  std::byte* const incoming = c.scratch(a.bytes);
  if (!incoming) co_return;
  const Bytes theirs(incoming, a.bytes);
  if (rank < 2 * paired) {
    c.announce(rank - 1, theirs);
    co_await c.received();
    combine(c, a, result.data(), incoming, true);
  }
  const int virtual_rank = rank < 2 * paired ? rank / 2 : rank - paired;
  for (int distance = 1; distance < core; distance *= 2) {
    const int other = virtual_rank ^ distance;
    const int partner = other < paired ? 2 * other + 1 : other + paired;
    c.announce(partner, theirs);
    c.put(partner, result);
    co_await c.received();
    co_await c.flushed();
    combine(c, a, result.data(), incoming, other < virtual_rank);
  }
  if (rank < 2 * paired) c.put(rank - 1, result);
  co_await c.flushed();
}

double cost_us(const Shape& s, const CostModel& m) {
  const double n = static_cast<double>(s.bytes);
  const int rounds = ceil_log2(s.p) + (std::has_single_bit(static_cast<unsigned>(s.p)) ? 0 : 1);
  return rounds * (m.message_us(n) + m.own_copies_us(2 * n));
}

}  // namespace

std::span<const Algorithm> rows() {
  static constexpr Algorithm kRows[] = {{.collective = IBCOLL_ALLREDUCE,
                                         .name = "recursive_doubling",
                                         .about = "Thakur, Gropp; any p; lg p (alpha + n beta + n gamma)",
                                         .run = run,
                                         .cost_us = cost_us}};
  return kRows;
}

}  // namespace ibcoll::allreduce::recursive_doubling
