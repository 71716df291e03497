// SPDX-License-Identifier: BSD-3-Clause
// Allreduce on one node: rank i reads segment i of all operands and combines it, then everyone reads the others' segments of
// the result. Operands are combined in rank order: results are bitwise the same everywhere, and the operation need not
// commute. In place, segment i of the result replaces an operand that rank i alone has read.
// Cost: 3 steps, 2 (p - 1) reads of n / p bytes per rank.
#include <algorithm>

#include "runtime/collectives/single_copy.h"

namespace ibcoll {
namespace {

constexpr uint64_t kPiece = 32768;  // combined at a time: stays in the cache of a core

Task allreduce_single_copy(Comm& c, Args a) {
  NodeWindow& w = c.node();
  const uint64_t element = a.reduction.element_bytes();
  const auto p = static_cast<uint64_t>(c.size());
  const ConstBytes operand(a.in_place ? a.recv.base : a.send.base, a.bytes);
  const Bytes result(a.recv.base, a.bytes);
  // Segment i is [i, i + 1) * count / p.
  const auto start = [&](int i) { return static_cast<uint64_t>(i) * (a.bytes / element) / p * element; };

  co_await c.next_step(kAddressBytes);
  publish_address(w, operand.data());
  c.publish();
  const uint64_t most = std::max(kPiece / element, uint64_t{1}) * element;
  std::byte* const combined = c.scratch(2 * most);
  if (!combined) co_return;
  for (int i = 1; i < c.size(); ++i) co_await c.published(c.peer(i));
  for (uint64_t at = start(c.rank()), end = start(c.rank() + 1); at < end; at += most) {
    const Bytes piece = part(result.first(end), at, most);
    const Bytes sum(combined, piece.size()), theirs(combined + most, piece.size());
    for (int i = c.size() - 1; i >= 0; --i) {
      const Bytes into = i == c.size() - 1 ? sum : theirs;
      if (i != c.rank())
        c.read(i, published_address(w, i) + at, into);
      else if (i == c.size() - 1)
        c.copy(sum, part(operand, at, sum.size()));
      if (i < c.size() - 1)
        a.reduction(i == c.rank() ? operand.data() + at : theirs.data(), sum.data(), sum.size() / element);
    }
    c.copy(piece, sum);
  }

  co_await c.next_step(kAddressBytes);
  publish_address(w, result.data());
  c.publish();
  for (int i = 1; i < c.size(); ++i) {
    const int owner = c.peer(-i);
    co_await c.published(owner);
    c.read(owner, published_address(w, owner) + start(owner),
           result.subspan(start(owner), start(owner + 1) - start(owner)));
  }
  co_await c.next_step(0);
  c.publish();
  for (int i = 1; i < c.size(); ++i) co_await c.published(c.peer(i));
}

double cost_us(const Shape& s, const CostModel& m) {
  const double n = static_cast<double>(s.bytes);
  const double pieces = 1 + n / s.p / kPiece;
  return 3 * m.step_us(s.p) + m.reads_us((1 + pieces) * (s.p - 1), 2 * n * (s.p - 1) / s.p, 2 * n * s.p) +
         m.own_copies_us(n + n / s.p);
}

}  // namespace

extern const Algorithm kAllreduceSingleCopy{IBCOLL_ALLREDUCE,
                                            "single_copy",
                                            "rank i combines segment i in others' memory; 3 steps",
                                            allreduce_single_copy,
                                            applies_with_single_copy,
                                            cost_us,
                                            true};

}  // namespace ibcoll
