// SPDX-License-Identifier: BSD-3-Clause
// Allreduce, ring: segment i of the vector goes around once, from rank i + 1 on, and each rank adds its own operand; rank i, which
// completes it, sends the result around once more. Every rank sends to rank + 1 only.
// Source: Thakur, Gropp, reduce-scatter and allgather as rings (Patarasuk, Yuan 2009 for the bound). Any p; operands are
// combined in ring order, so the operation must commute; every rank gets the same bits.
// Rounds: 2 (p - 1). Cost: 2 (p-1) alpha + 2 (p-1)/p n beta + (p-1)/p n gamma.
#include "runtime/collectives/allreduce/allreduce.h"
#include "runtime/collectives/framework/halving.h"

namespace ibcoll::allreduce::ring {

Task among(Comm& c, Args a, std::byte* work) {
  const int p = c.size();
  const Segments segments{a.count, a.reduction.element_bytes(), p};
  const Bytes result = a.buffer();
  const int left = c.peer(-1), right = c.peer(1);

  // Segments rank - 2, rank - 3, ... rank come one after the other; each has its place in `work`, so all are announced at once.
  uint64_t coming = a.bytes - segments.bytes(left);
  for (int i = 2; i <= p; ++i) {
    const Bytes segment = segments.of(Bytes(work, a.bytes), c.peer(-i % p));
    c.announce(left, segment);
  }
  c.put(right, segments.of(result, left));
  for (int i = 2; i <= p; ++i) {
    const Bytes mine = segments.of(result, c.peer(-i % p));
    coming -= mine.size();
    co_await c.received_from(left, coming);
    combine_in_order(a.reduction, mine, segments.of(Bytes(work, a.bytes), c.peer(-i % p)).data(), true);
    if (i < p) c.put(right, mine);
  }
  co_await c.flushed();  // results replace what was sent

  coming = a.bytes - segments.bytes(c.rank());
  for (int i = 1; i < p; ++i) c.announce(left, segments.of(result, c.peer(-i)));
  c.put(right, segments.of(result, c.rank()));
  for (int i = 1; i < p; ++i) {
    const Bytes segment = segments.of(result, c.peer(-i));
    coming -= segment.size();
    co_await c.received_from(left, coming);
    if (i + 1 < p) c.put(right, segment);
  }
  co_await c.flushed();
}

double cost_us(const Shape& s, const CostModel& m) {
  const double n = static_cast<double>(s.bytes);
  const double moved = n * (s.p - 1) / s.p;
  return 2 * (s.p - 1) * m.message_us(0) + 2 * m.beta_us * moved + m.own_copies_us(2 * moved);
}

std::span<const Algorithm> rows() {
  static constexpr Algorithm kRows[] = {{.collective = IBCOLL_ALLREDUCE,
                                         .name = "ring",
                                         .about = "Thakur, Gropp; commutative; 2 (p-1) alpha + 2 n beta + n gamma",
                                         .run = in_pieces<among>,
                                         .why_not = needs_commutative,
                                         .cost_us = cost_us}};
  return kRows;
}

}  // namespace ibcoll::allreduce::ring
