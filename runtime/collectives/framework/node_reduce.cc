// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/collectives/framework/node_reduce.h"

#include <functional>

namespace ibcoll {
namespace {

// result = operand(0) op ... op operand(ranks - 1)
template <typename Operand>
void combine_operands(const Reduction& reduction, std::byte* result, uint64_t count, int ranks, Operand operand) {
  if (count == 0) return;  // a segment of a piece with fewer elements than ranks
  if (ranks == 1)
    reduction.single(result, operand(0), count);
  else
    reduction.combine(operand(ranks - 2), operand(ranks - 1), result, count);
  for (int i = ranks - 3; i >= 0; --i) reduction(operand(i), result, count);
}

// The same as combine_areas(), in the order in which the other ranks publish. result: this rank's operand, or where it
// goes.
Task combine_as_published(Comm& c, Reduction reduction, const std::byte* own, Bytes result, uint64_t at,
                          uint64_t area) {
  NodeWindow& w = c.node();
  const uint64_t count = result.size() / reduction.element_bytes();
  uint64_t taken = 0;  // by bits, of the first 64 ranks
  for (int pass = 0; pass < 2; ++pass) {
    for (int i = w.next(w.rank()); i != w.rank(); i = w.next(i)) {
      const uint64_t bit = i < 64 ? uint64_t{1} << i : 0;
      if ((taken & bit) || (pass == 0 && (bit == 0 || !w.published(i, NodeWindow::kWhole)))) continue;
      co_await c.published(i);
      taken |= bit;
      if (count == 0) continue;
      const std::byte* const theirs = w.own_area(i, area) + at;
      if (own == result.data())
        reduction(theirs, result.data(), count);
      else
        reduction.combine(theirs, own, result.data(), count);
      own = result.data();
    }
  }
}

// The same in the order of the ranks, from the highest one down.
Task combine_in_rank_order(Comm& c, Reduction reduction, const std::byte* own, Bytes result, uint64_t at,
                           uint64_t area) {
  NodeWindow& w = c.node();
  const uint64_t count = result.size() / reduction.element_bytes();
  const std::byte* highest = nullptr;
  for (int i = w.size() - 1; i >= 0; --i) {
    if (i != w.rank()) co_await c.published(i);
    if (count == 0) continue;  // a segment of a piece with fewer elements than ranks
    const std::byte* const operand = i == w.rank() ? own : w.own_area(i, area) + at;
    if (i == w.size() - 1)
      highest = operand;
    else if (i == w.size() - 2)
      reduction.combine(operand, highest, result.data(), count);
    else
      reduction(operand, result.data(), count);
  }
}

// True when the owner of a segment may read its own operand where it is, though the result is written meanwhile.
// (Otherwise than at the same place they overlap in reduce_scatter in place.)
bool may_stay(const NodeWindow& window, const Reduction& reduction, bool any_order, ConstBytes operand, Bytes result) {
  if (operand.data() == result.data()) return any_order || stays(window, reduction, operand.data(), result.data());
  const std::less_equal<const std::byte*> before;
  return before(operand.data() + operand.size(), result.data()) ||
         before(result.data() + result.size(), operand.data());
}

}  // namespace

void combine_areas(NodeWindow& window, const Reduction& reduction, std::byte* result, const std::byte* own, uint64_t at,
                   uint64_t count, uint64_t area, int steps_back) {
  combine_operands(reduction, result, count, window.size(), [&](int i) -> const std::byte* {
    return i == window.rank() ? own : window.area(i, area, steps_back) + at;
  });
}

void combine_own_areas(NodeWindow& window, const Reduction& reduction, Bytes result, const std::byte* own, uint64_t at,
                       uint64_t area, int ranks) {
  combine_operands(reduction, result.data(), result.size() / reduction.element_bytes(), ranks,
                   [&](int i) -> const std::byte* { return i == window.rank() ? own : window.own_area(i, area) + at; });
}

bool stays(const NodeWindow& window, const Reduction& reduction, const std::byte* operand, const std::byte* result) {
  return operand != result || (window.size() <= 2 && reduction.result_may_replace_lower());
}

Task reduce_on_node(Comm& c, NodeOwners owners, Reduction reduction, bool any_order, ConstBytes operand, Bytes result) {
  NodeWindow& w = c.node();
  const Segments segments = owners.segments;
  const int own = owners.owned_by(w.rank(), w.size());
  if (w.size() == 1) {
    c.copy(result, operand);
    co_return;
  }
  const uint64_t longest = segments.longest(), parts = static_cast<uint64_t>(segments.parts);
  const uint64_t cell = std::min(longest, whole_elements(w.area_bytes() / parts, segments.element));
  const uint64_t area = cell * parts;
  const bool owns = own < segments.parts;
  const bool aside = owns && !may_stay(w, reduction, any_order, segments.of(operand, own), result);
  for (uint64_t at = 0; at < longest; at += cell) {
    co_await c.next_own_step(area);
    for (int i = 0; i < segments.parts; ++i) {
      if (i == own && !aside) continue;  // nobody else reads it
      const ConstBytes from = part(segments.of(operand, i), at, cell);
      w.write(Bytes(w.own_area(w.rank(), area) + cell * static_cast<uint64_t>(i), from.size()), from,
              owners.owner(i, w.size()));
    }
    c.publish();
    if (!owns) continue;
    const Bytes sum = part(result, at, cell);
    const std::byte* const mine = segments.of(operand, own).data() + at;
    const uint64_t offset = cell * static_cast<uint64_t>(own);
    const std::byte* const own_operand = aside ? w.own_area(w.rank(), area) + offset : mine;
    if (any_order)
      co_await combine_as_published(c, reduction, own_operand, sum, offset, area);
    else
      co_await combine_in_rank_order(c, reduction, own_operand, sum, offset, area);
  }
}

Task share_on_node(Comm& c, NodeOwners owners, ConstBytes own, Bytes vector) {
  NodeWindow& w = c.node();
  const Segments segments = owners.segments;
  const int first = owners.owned_by(w.rank(), w.size());
  const bool alone = segments.parts == 1;
  if (w.size() == 1) co_return;
  const uint64_t longest = segments.longest();
  const uint64_t piece = std::min(longest, window_piece(longest, w.area_bytes(), w.crowded()));
  for (uint64_t at = 0; at < longest; at += piece) {
    if (alone)
      co_await c.next_sole_step(piece);
    else
      co_await c.next_step(piece);
    const ConstBytes mine = part(own, at, piece);
    if (!mine.empty())
      w.write(Bytes(alone ? w.sole_area(w.rank(), piece) : w.area(w.rank(), piece), mine.size()), mine);
    c.publish();
    for (int i = 0; i < segments.parts && !vector.empty(); ++i) {
      const int segment = (first + i) % segments.parts, owner = owners.owner(segment, w.size());
      const Bytes to = part(segments.of(vector, segment), at, piece);
      if (owner != w.rank()) co_await c.published(owner);
      c.copy(to, owner == w.rank() ? mine
                                   : ConstBytes(alone ? w.sole_area(owner, piece) : w.area(owner, piece), to.size()));
    }
  }
}

Comm& counterparts(Comm& c, int segment, int node, int first) {
  const Placement& nodes = c.placement();
  if (segment == 0 && first == 0) return c.leaders();
  const auto count = static_cast<size_t>(nodes.node_count());
  auto* const ranks = c.scratch_array<int>(count);
  if (!ranks) return c;
  for (int i = 0; i < nodes.node_count(); ++i) {
    const std::span<const int> locals = nodes.ranks_of(i);
    ranks[i] = locals[static_cast<size_t>(segment + (i == node ? first : 0)) % locals.size()];
  }
  return c.among(std::span<const int>(ranks, count));
}

}  // namespace ibcoll
