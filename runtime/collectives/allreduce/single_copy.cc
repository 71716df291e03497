// SPDX-License-Identifier: BSD-3-Clause
// Allreduce on one node: rank i reads segment i of all operands and combines it, then everyone reads the others'
// segments of the result. Operands are combined in rank order: results are bitwise the same everywhere, and the
// operation need not commute. In place, segment i of the result replaces an operand that rank i alone has read.
// Cost: 3 steps, 2 (p - 1) reads of n / p bytes per rank.
#include <algorithm>

#include "runtime/collectives/framework/single_copy.h"

namespace ibcoll::allreduce::single_copy {
namespace {

constexpr uint64_t kPiece = 32768;  // combined at a time: stays in the cache of a core

Task run(Comm& c, Args a) {
  NodeWindow& w = c.node();
  const uint64_t element = a.reduction.element_bytes();
  const auto p = static_cast<uint64_t>(c.size());
  const std::byte* const operand = a.in_place ? a.recv.base : a.send.base;
  const Bytes result(a.recv.base, a.bytes);
  // Segment i is [i, i + 1) * count / p.
  const auto segment = [&](int i) {
    const auto start = [&](int k) { return static_cast<uint64_t>(k) * (a.bytes / element) / p * element; };
    return result.subspan(start(i), start(i + 1) - start(i));
  };
  const auto offset = [&](Bytes part) { return static_cast<uint64_t>(part.data() - result.data()); };

  co_await c.next_step(kAddressBytes);
  publish_address(c, ConstBytes(operand, a.bytes));
  c.publish();
  co_await c.all_published();
  const Bytes own = segment(c.rank());
  const uint64_t most = std::min(own.size(), std::max(kPiece / element, uint64_t{1}) * element);
  std::byte* const work = c.scratch(2 * most);
  if (!work) co_return;
  // In place the result would replace this rank's operand before it is combined. The last rank's is combined first.
  const bool aside = a.in_place && c.rank() != c.size() - 1;
  for (uint64_t at = 0; at < own.size(); at += most) {
    const Bytes piece = part(own, at, most);
    const Bytes sum = aside ? Bytes(work + most, piece.size()) : piece;
    const std::byte* const own_operand = operand + offset(piece);
    for (int i = c.size() - 1; i >= 0; --i) {
      const bool last = i == c.size() - 1;
      const Bytes into = last ? sum : Bytes(work, piece.size());
      if (i != c.rank()) {
        if (!co_await c.read(i, published_address(w, i) + offset(piece), into)) co_return;
      } else if (c.size() == 1) {
        a.reduction.single(sum.data(), own_operand, sum.size() / element);
      } else if (last) {
        c.copy(sum, ConstBytes(own_operand, sum.size()));
      }
      if (!last) a.reduction(i == c.rank() ? own_operand : work, sum.data(), sum.size() / element);
    }
    c.copy(piece, sum);
  }

  co_await c.next_step(kAddressBytes);
  publish_address(c, result);
  c.publish();
  for (int i = 1; i < c.size(); ++i) {
    const int owner = c.peer(-i);
    co_await c.published(owner);
    if (!co_await c.read(owner, published_address(w, owner) + offset(segment(owner)), segment(owner))) co_return;
  }
  co_await c.next_step(0);
  c.publish();
  co_await all_have_read(c);
}

double cost_us(const Shape& s, const CostModel& m) {
  const double n = static_cast<double>(s.bytes);
  const double pieces = 1 + n / s.p / kPiece;
  const double others = n * (s.p - 1) / s.p;
  return 3 * m.step_us(s.p) + m.reads_us((1 + pieces) * (s.p - 1), 2 * others) + m.own_copies_us(n - others) +
         m.combines_us(others);
}

}  // namespace

std::span<const Algorithm> rows() {
  static constexpr Algorithm kRows[] = {{.collective = IBCOLL_ALLREDUCE,
                                         .name = "single_copy",
                                         .about = "rank i combines segment i in others' memory; 3 steps",
                                         .run = run,
                                         .why_not = applies_with_single_copy,
                                         .cost_us = cost_us,
                                         .uses_window = true,
                                         .order = Order::kRanks}};
  return kRows;
}

}  // namespace ibcoll::allreduce::single_copy
