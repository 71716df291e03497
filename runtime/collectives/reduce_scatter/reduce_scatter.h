// SPDX-License-Identifier: BSD-3-Clause
// Shared by the algorithms of reduce_scatter(_block): they combine vectors in scratch, in pieces of every block, so
// that scratch stays bounded.
#pragma once

#include <algorithm>

#include "runtime/collectives/framework/algorithm.h"
#include "runtime/collectives/framework/pieces.h"

namespace ibcoll::reduce_scatter {

// Blocks one after the other: block i is [starts[i], starts[i + 1]).
struct Packed {
  std::byte* base;
  const uint64_t* starts;
  int parts;
  const std::byte* operand = nullptr;  // where this rank's operand lies, packed alike; nullptr: at base
  std::byte* result = nullptr;         // where its block of the result goes; nullptr: where that is at base

  uint64_t start(int i) const noexcept { return starts[i]; }
  uint64_t bytes(int i) const noexcept { return starts[i + 1] - starts[i]; }
  Bytes of(Bytes vector, int i) const noexcept { return vector.subspan(start(i), bytes(i)); }
  Bytes vector() const noexcept { return {base, starts[parts]}; }
  Bytes operator[](int i) const noexcept { return of(vector(), i); }
  // Blocks [from, to).
  Bytes between(int from, int to) const noexcept { return {base + starts[from], starts[to] - starts[from]}; }
  ConstBytes operand_between(int from, int to) const noexcept {
    return {(operand ? operand : base) + starts[from], starts[to] - starts[from]};
  }
  // The operand is at base from now on.
  Packed at_base() const noexcept {
    if (operand) Comm::copy(vector(), ConstBytes(operand, starts[parts]));
    return {base, starts, parts, nullptr, result};
  }
  Bytes result_of(int rank) const noexcept { return {result ? result : base + starts[rank], bytes(rank)}; }
  // The result of the rank is at base.
  void deliver(int rank) const noexcept {
    if (result) Comm::copy(result_of(rank), (*this)[rank]);
  }
};

// Combines the vectors of all ranks of c; block i of the result is in result_of(i) at rank i, and nothing is promised
// of the others. `work`: as long as the vector, which is not empty.
using Among = Task (*)(Comm& c, Reduction reduction, Packed blocks, std::byte* work);

inline uint64_t longest_block(const Args& a, int p) {
  uint64_t longest = 0;
  for (int i = 0; i < p; ++i) longest = std::max(longest, a.send.size(i));
  return longest;
}

// Bytes of every block that move at a time.
inline uint64_t cell_bytes(const Args& a, int p) {
  return std::min(longest_block(a, p),
                  whole_elements(kReductionPiece / static_cast<uint64_t>(p), a.reduction.element_bytes()));
}

// The whole call, piece by piece. In a vector of one piece the blocks lie one after the other already. In place, the result replaces the operand
// when all of it has been sent.
template <Among kAmong>
Task in_pieces(Comm& c, Args a) {
  const int p = c.size();
  const uint64_t longest = longest_block(a, p), cell = cell_bytes(a, p);
  if (p == 1) a.reduction.single(a.recv.base, a.send.base, a.bytes / a.reduction.element_bytes());
  if (p == 1 || longest == 0) co_return;
  uint64_t most = 0;
  for (int i = 0; i < p; ++i) most += std::min(cell, a.send.size(i));
  auto* const starts = c.scratch_array<uint64_t>(static_cast<uint64_t>(p) + 1);
  std::byte* const memory = c.scratch(2 * most);
  if (!starts || !memory) co_return;
  for (uint64_t at = 0; at < longest; at += cell) {
    const Bytes result = part(a.buffer(), at, cell);
    const Packed blocks{memory, starts, p, longest == cell ? a.send[0].data() : nullptr,
                        a.in_place ? nullptr : result.data()};
    starts[0] = 0;
    for (int i = 0; i < p; ++i) {
      const ConstBytes block = part(a.send[i], at, cell);
      if (!blocks.operand) c.copy(Bytes(memory + starts[i], block.size()), block);
      starts[i + 1] = starts[i] + block.size();
    }
    co_await kAmong(c, a.reduction, blocks, memory + most);
    if (a.in_place) c.copy(result, blocks[c.rank()]);
  }
}

// Costs of a call on s.p ranks.
namespace recursive_halving {
Task among(Comm& c, Reduction reduction, Packed blocks, std::byte* work);
double cost_us(const Shape& s, const CostModel& m);
}  // namespace recursive_halving
namespace recursive_doubling {
Task among(Comm& c, Reduction reduction, Packed blocks, std::byte* work);
double cost_us(const Shape& s, const CostModel& m);
}  // namespace recursive_doubling
namespace pairwise {
Task among(Comm& c, Reduction reduction, Packed blocks, std::byte* work);
double cost_us(const Shape& s, const CostModel& m);
}  // namespace pairwise
namespace ring {
Task among(Comm& c, Reduction reduction, Packed blocks, std::byte* work);
double cost_us(const Shape& s, const CostModel& m);
}  // namespace ring
namespace circulant {
Task among(Comm& c, Reduction reduction, Packed blocks, std::byte* work);
double cost_us(const Shape& s, const CostModel& m);
}  // namespace circulant

// A copy of all blocks.
inline double packing_us(const Shape& s, const CostModel& m) { return m.own_copies_us(static_cast<double>(s.total)); }
// The same where only vectors of several pieces are packed.
inline double packing_of_pieces_us(const Shape& s, const CostModel& m) {
  const uint64_t cell = whole_elements(kReductionPiece / static_cast<uint64_t>(s.p), s.element_bytes);
  return s.bytes > cell ? packing_us(s, m) : 0;
}

template <Among kAmong, double (*kCost)(const Shape&, const CostModel&),
          double (*kLate)(const Shape&, const CostModel&) = nullptr>
constexpr Algorithm row(ibcoll_collective_t collective, const char* name, const char* about, Order order,
                        AsExchange as_exchange = AsExchange::kNever) {
  return {.collective = collective,
          .name = name,
          .about = about,
          .run = in_pieces<kAmong>,
          .why_not = order == Order::kOwn ? needs_commutative : applies_always,
          .cost_us = kCost,
          .late_us = kLate,
          .order = order,
          .as_exchange = as_exchange};
}

}  // namespace ibcoll::reduce_scatter
