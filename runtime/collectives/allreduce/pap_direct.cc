// SPDX-License-Identifier: BSD-3-Clause
// Allreduce, PAP_Direct: every rank owns a segment of the vector and gets all others' operands of it, which it combines
// in the order in which they come; it sends the result to everybody. While one rank is late, the others reduce-scatter
// among themselves: when it comes, each owner has one operand left to add.
// Source: Qian, Afsahi, PAP_Direct, carried to a reduction; what the late rank finds done is what StragglAR 2025 (arXiv
// 2505.23523) asks for, without knowing beforehand who is late. Commutative; every rank gets the same bits.
// Messages: 2 (p - 1) per rank. Cost: 2 alpha + 2 (p-1)/p n beta + (p-1)/p n gamma.
#include "runtime/collectives/allreduce/allreduce.h"
#include "runtime/collectives/framework/halving.h"

namespace ibcoll::allreduce::pap_direct {
namespace {

// Where the operand of peer(i) lands.
Bytes operand_of(int i, std::byte* work, uint64_t bytes) {
  return {work + static_cast<uint64_t>(i - 1) * bytes, bytes};
}

// Adds the operand that landed from the peer, who may then write the result of its own segment.
void take(Comm& c, const Args& a, const Segments& segments, int from, const std::byte* operand) {
  const Bytes own = segments.of(a.buffer(), c.rank());
  a.reduction(operand, own.data(), own.size() / segments.element);
  c.announce(from, segments.of(a.buffer(), from));
}

}  // namespace

Task among(Comm& c, Args a, std::byte* work) {
  const int p = c.size();
  const Segments segments{a.count, a.reduction.element_bytes(), p};
  const Bytes own = segments.of(a.buffer(), c.rank());
  for (int i = 1; i < p; ++i) c.announce(c.peer(i), operand_of(i, work, own.size()));  // the arrival notice
  // A put to a rank that is not there waits in a queue of its own.
  for (int i = 1; i < p; ++i) c.put(c.peer(i), segments.of(a.buffer(), c.peer(i)));
  if (own.empty()) {
    for (int i = 1; i < p; ++i) c.announce(c.peer(i), segments.of(a.buffer(), c.peer(i)));
  } else if (a.any_order()) {
    for (int i = 1; i < p; ++i) c.watch(c.peer(i));
    for (int i = 1; i < p; ++i) {
      const int from = co_await c.next_landing();
      const int distance = (from - c.rank() + p) % p;
      take(c, a, segments, from, operand_of(distance, work, own.size()).data());
    }
  } else {
    for (int i = 1; i < p; ++i) {
      co_await c.received_from(c.peer(i));
      take(c, a, segments, c.peer(i), operand_of(i, work, own.size()).data());
    }
  }
  for (int i = 1; i < p; ++i) c.put(c.peer(i), own);
  co_await c.received();
  co_await c.flushed();
}

double cost_us(const Shape& s, const CostModel& m) {
  const double segment = static_cast<double>(s.bytes) / s.p;
  return 2 * (m.message_us(0) + (s.p - 1) * m.stream_us(segment)) + combine_landed_us(m, segment * (s.p - 1));
}

std::span<const Algorithm> rows() {
  static constexpr Algorithm kRows[] = {
      {.collective = IBCOLL_ALLREDUCE,
       .name = "pap_direct",
       .about = "PAP_Direct as a reduction; commutative; in arrival order; 2 alpha + 2 n beta + n gamma",
       .run = in_pieces<among>,
       .why_not = needs_commutative,
       .cost_us = whole_us<cost_us>}};
  return kRows;
}

}  // namespace ibcoll::allreduce::pap_direct
