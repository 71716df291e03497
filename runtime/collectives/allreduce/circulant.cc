// SPDX-License-Identifier: BSD-3-Clause
// Allreduce on a circulant graph: with R[i] the segment of rank r + i, in round k = q - 1, ..., 0 rank r sends R[skip(k)] up to, not
// including, R[skip(k + 1)] to r + skip(k), and adds to R[0], R[1], ... what arrives. Then R[0] is complete, and the same rounds
// backwards collect all segments. Nothing is packed: neighbouring segments leave as they lie, in two messages where they go past
// the end of the vector.
// Source: Traff 2024, reduce-scatter in q = ceil(lg p) rounds. Any p; the operation must commute; every rank gets the same bits.
// Rounds: 2 q. Cost: 2 q alpha + 2 (p-1)/p n beta + (p-1)/p n gamma.
#include "runtime/collectives/allreduce/allreduce.h"
#include "runtime/collectives/framework/circulant_skips.h"
#include "runtime/collectives/framework/halving.h"

namespace ibcoll::allreduce::circulant {

// Segments `first`, first + 1, ..., `count` of them, of a vector that ends after segment p - 1 and goes on with segment 0.
struct Neighbours {
  Bytes until_end, from_start;
  Neighbours(const Segments& segments, Bytes vector, int first, int count) noexcept {
    const int here = std::min(count, segments.parts - first);
    until_end = vector.subspan(segments.start(first), segments.start(first + here) - segments.start(first));
    from_start = vector.first(segments.start(count - here));
  }
};

Task among(Comm& c, Args a, std::byte* work) {
  const Segments segments{a.count, a.reduction.element_bytes(), c.size()};
  const Bytes result = a.buffer();
  const CirculantSkips skip(c.size());
  for (int k = skip.rounds() - 1; k >= 0; --k) {
    const int to = c.peer(skip[k]), from = c.peer(-skip[k]), count = skip[k + 1] - skip[k];
    const Neighbours leaving(segments, result, to, count), mine(segments, result, c.rank(), count);
    const Bytes first(work, mine.until_end.size());
    const Bytes second(work + first.size(), mine.from_start.size());
    c.announce(from, first);
    c.announce(from, second);
    c.put(to, leaving.until_end);
    c.put(to, leaving.from_start);
    co_await c.received();
    combine_in_order(a.reduction, mine.until_end, first.data(), true);
    combine_in_order(a.reduction, mine.from_start, second.data(), true);
  }
  co_await c.flushed();  // results replace what was sent
  for (int k = 0; k < skip.rounds(); ++k) {
    const int to = c.peer(-skip[k]), from = c.peer(skip[k]), count = skip[k + 1] - skip[k];
    const Neighbours leaving(segments, result, c.rank(), count), coming(segments, result, from, count);
    c.announce(from, coming.until_end);
    c.announce(from, coming.from_start);
    c.put(to, leaving.until_end);
    c.put(to, leaving.from_start);
    co_await c.received();
  }
  co_await c.flushed();
}

double cost_us(const Shape& s, const CostModel& m) {
  const double n = static_cast<double>(s.bytes);
  const double moved = n * (s.p - 1) / s.p;
  // Half of the messages go past the end of the vector.
  return ceil_log2(s.p) * (2 * m.message_us(0) + m.stream_us(0)) + 2 * m.beta_us * moved + m.own_copies_us(2 * moved);
}

std::span<const Algorithm> rows() {
  static constexpr Algorithm kRows[] = {{.collective = IBCOLL_ALLREDUCE,
                                         .name = "circulant",
                                         .about = "Traff 2024; commutative; 2 ceil(lg p) alpha + 2 n beta + n gamma",
                                         .run = in_pieces<among>,
                                         .why_not = needs_commutative,
                                         .cost_us = cost_us}};
  return kRows;
}

}  // namespace ibcoll::allreduce::circulant
