// SPDX-License-Identifier: BSD-3-Clause
// What the algorithms of allreduce offer each other: each combines in place a piece of the vector among the ranks of a
// Comm, which may be the whole team, the leaders of nodes or counterparts on them.
#pragma once

#include "runtime/collectives/framework/algorithm.h"
#include "runtime/collectives/framework/pieces.h"

namespace ibcoll::allreduce {

// The operand is in a.recv, where the result replaces it. `work` has work_bytes() for it. Not for empty vectors.
using Among = Task (*)(Comm& c, Args a, std::byte* work);

// For a vector of so many bytes on p ranks: p equal segments of it, all as long as the longest, and a byte for each.
inline uint64_t work_bytes(const Args& a, uint64_t bytes, int p) noexcept {
  return bytes + static_cast<uint64_t>(p) * (a.reduction.element_bytes() + 1);
}

// The whole call: the operand copied to the result, and then piece by piece.
template <Among kAmong>
Task in_pieces(Comm& c, Args a) {
  const uint64_t piece = std::min(a.bytes, whole_elements(kReductionPiece, a.reduction.element_bytes()));
  if (c.size() == 1) a.reduction.single(a.recv.base, a.operand().data(), a.count);
  if (c.size() == 1 || a.bytes == 0) co_return;
  c.copy(a.buffer(), a.operand());
  std::byte* const work = c.scratch(work_bytes(a, piece, c.size()));
  if (!work) co_return;
  for (uint64_t at = 0; at < a.bytes; at += piece)
    co_await kAmong(c, in_place_call(a, part(a.buffer(), at, piece)), work);
}

// And what it costs, by that of kCost on s.p ranks.
template <double (*kCost)(const Shape&, const CostModel&)>
double whole_us(const Shape& s, const CostModel& m) {
  return kCost(s, m) + m.own_copies_us(static_cast<double>(s.bytes));
}

namespace recursive_doubling {
Task among(Comm& c, Args a, std::byte* work);
double cost_us(const Shape& s, const CostModel& m);
}  // namespace recursive_doubling
namespace rabenseifner {
Task among(Comm& c, Args a, std::byte* work);
double cost_us(const Shape& s, const CostModel& m);
}  // namespace rabenseifner
namespace ring {
Task among(Comm& c, Args a, std::byte* work);
double cost_us(const Shape& s, const CostModel& m);
}  // namespace ring
namespace circulant {
Task among(Comm& c, Args a, std::byte* work);
double cost_us(const Shape& s, const CostModel& m);
}  // namespace circulant
namespace pap_direct {
Task among(Comm& c, Args a, std::byte* work);
double cost_us(const Shape& s, const CostModel& m);
}  // namespace pap_direct

}  // namespace ibcoll::allreduce
