// SPDX-License-Identifier: BSD-3-Clause
// Shared by the algorithms of allreduce: each combines in place a piece of the vector among the ranks of a
// Comm, which may be the whole team, the leaders of nodes or counterparts on them.
#pragma once

#include <bit>

#include "runtime/collectives/framework/algorithm.h"
#include "runtime/collectives/framework/pieces.h"

namespace ibcoll::allreduce {

// From a.operand() to a.buffer(), which may be the same. `work` has work_bytes() for it. Not for empty vectors.
using Among = Task (*)(Comm& c, Args a, std::byte* work);

// For a vector of `bytes` bytes on p ranks: room for p segments, each as long as the longest, and a byte for each rank.
inline uint64_t work_bytes(const Args& a, uint64_t bytes, int p) noexcept {
  return bytes + static_cast<uint64_t>(p) * (a.reduction.element_bytes() + 1);
}

// The call for bytes [at, at + most) of the vector.
inline Args piece_of(Args a, uint64_t at, uint64_t most) noexcept {
  const ConstBytes operand = part(a.operand(), at, most);
  a.send.base = operand.data();
  a.recv.base = part(a.buffer(), at, most).data();
  a.bytes = operand.size();
  a.count = operand.size() / a.reduction.element_bytes();
  return a;
}

// The whole call, piece by piece.
template <Among kAmong>
Task piece_by_piece(Comm& c, Args a) {
  const uint64_t piece = std::min(a.bytes, whole_elements(kReductionPiece, a.reduction.element_bytes()));
  if (c.size() == 1) a.reduction.single(a.recv.base, a.operand().data(), a.count);
  if (c.size() == 1 || a.bytes == 0) co_return;
  std::byte* const work = c.scratch(work_bytes(a, piece, c.size()));
  if (!work) co_return;
  for (uint64_t at = 0; at < a.bytes; at += piece) co_await kAmong(c, piece_of(a, at, piece), work);
}
// The same; one piece is the whole call.
template <Among kAmong>
Task in_pieces(Comm& c, Args a) {
  const bool one = a.bytes > 0 && a.bytes <= whole_elements(kReductionPiece, a.reduction.element_bytes());
  std::byte* const work = one && c.size() > 1 ? c.scratch(work_bytes(a, a.bytes, c.size())) : nullptr;
  return work ? kAmong(c, piece_of(a, 0, a.bytes), work) : piece_by_piece<kAmong>(c, a);
}

// Cost of the whole call on s.p ranks where all ranks copy first.
template <double (*kCost)(const Shape&, const CostModel&)>
double whole_us(const Shape& s, const CostModel& m) {
  return kCost(s, m) + m.own_copies_us(static_cast<double>(s.bytes));
}
// Cost where only paired ranks copy (p no power of two).
template <double (*kCost)(const Shape&, const CostModel&)>
double whole_of_pairs_us(const Shape& s, const CostModel& m) {
  return std::has_single_bit(static_cast<unsigned>(s.p)) ? kCost(s, m) : whole_us<kCost>(s, m);
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
