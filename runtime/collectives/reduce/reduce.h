// SPDX-License-Identifier: BSD-3-Clause
// Shared by the algorithms of reduce: each combines a piece of the vector among the ranks of a Comm, which
// may be the whole team or ranks that stand for their nodes.
#pragma once

#include "runtime/collectives/framework/algorithm.h"
#include "runtime/collectives/framework/pieces.h"

namespace ibcoll::reduce {

// a.send.base: the operand. a.recv.base: memory of its length on all ranks, which may be the operand; at the root the
// result goes there. `work`: slots(p) times as long. Not for empty vectors.
using Among = Task (*)(Comm& c, Args a, std::byte* work);
using Slots = int (*)(int p);

// The call for bytes [at, at + most): the result, or partial ones, go to `into`.
inline Args piece_into(Args a, std::byte* into, uint64_t at, uint64_t most) noexcept {
  const ConstBytes operand = part(a.operand(), at, most);
  a.in_place = false;
  a.send.base = operand.data();
  a.recv.base = into;
  a.bytes = operand.size();
  a.count = operand.size() / a.reduction.element_bytes();
  return a;
}

namespace binomial {
Task among(Comm& c, Args a, std::byte* work);
int slots(int p);
double cost_us(const Shape& s, const CostModel& m);
double late_us(const Shape& s, const CostModel& m);
}  // namespace binomial
namespace reduce_scatter_gather {
Task among(Comm& c, Args a, std::byte* work);
int slots(int p);
double cost_us(const Shape& s, const CostModel& m);
double late_us(const Shape& s, const CostModel& m);
}  // namespace reduce_scatter_gather

// The whole call, piece by piece.
template <Among kAmong, Slots kSlots>
Task piece_by_piece(Comm& c, Args a) {
  const auto slots = static_cast<uint64_t>(kSlots(c.size()));
  const bool root = c.rank() == a.root;
  if (c.size() == 1) a.reduction.single(a.recv.base, a.operand().data(), a.count);
  if (c.size() == 1 || a.bytes == 0) co_return;
  const uint64_t piece = std::min(a.bytes, whole_elements(kReductionPiece / slots, a.reduction.element_bytes()));
  std::byte* const work = c.scratch(piece * (slots + (root ? 0 : 1)));
  if (!work) co_return;
  for (uint64_t at = 0; at < a.bytes; at += piece) {
    std::byte* const into = root ? a.recv.base + at : work + piece * slots;
    co_await kAmong(c, piece_into(a, into, at, piece), work);
  }
}
// The same; one piece is the whole call.
template <Among kAmong, Slots kSlots>
Task in_pieces(Comm& c, Args a) {
  const auto slots = static_cast<uint64_t>(kSlots(c.size()));
  const bool root = c.rank() == a.root;
  const bool one = a.bytes > 0 && a.bytes <= whole_elements(kReductionPiece / slots, a.reduction.element_bytes());
  std::byte* const work = one && c.size() > 1 ? c.scratch(a.bytes * (slots + (root ? 0 : 1))) : nullptr;
  if (!work) return piece_by_piece<kAmong, kSlots>(c, a);
  return kAmong(c, piece_into(a, root ? a.recv.base : work + a.bytes * slots, 0, a.bytes), work);
}

}  // namespace ibcoll::reduce
