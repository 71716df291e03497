// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/collectives/framework/node_reduce.h"

namespace ibcoll {
namespace {

// Small enough that writing and reading overlap, large enough to pay for a step; where ranks share cores nothing overlaps.
uint64_t shared_piece(uint64_t segment, uint64_t area_bytes, bool crowded) {
  return std::min(segment, crowded ? area_bytes : std::min(area_bytes, std::max<uint64_t>(8192, segment / 8)));
}

}  // namespace

void combine_areas(NodeWindow& window, const Reduction& reduction, std::byte* result, const std::byte* own, uint64_t at,
                   uint64_t count, uint64_t area, int steps_back) {
  const auto operand = [&](int i) {
    return i == window.rank() ? own : static_cast<const std::byte*>(window.area(i, area, steps_back)) + at;
  };
  if (count == 0) return;  // a segment of a piece with fewer elements than ranks
  const int ranks = window.size();
  const uint64_t bytes = count * reduction.element_bytes();
  if (ranks == 1)
    Comm::copy(Bytes(result, bytes), ConstBytes(operand(0), bytes));
  else
    reduction.combine(operand(ranks - 2), operand(ranks - 1), result, count);
  for (int i = ranks - 3; i >= 0; --i) reduction(operand(i), result, count);
}

bool stays(const NodeWindow& window, const Reduction& reduction, const std::byte* operand, const std::byte* result) {
  return operand != result || (window.size() <= 2 && reduction.kernel);
}

Task reduce_on_node(Comm& c, NodeOwners owners, Reduction reduction, ConstBytes operand, Bytes result) {
  NodeWindow& w = c.node();
  const Segments segments = owners.segments;
  const uint64_t element = segments.element;
  const int own = owners.owned_by(w.rank(), w.size());
  if (w.size() == 1) {
    c.copy(result, operand);
    co_return;
  }
  const uint64_t longest = segments.bytes(0), parts = static_cast<uint64_t>(segments.parts);
  const uint64_t cell = std::min(longest, whole_elements(w.area_bytes() / parts, element));
  const uint64_t area = cell * parts;
  const bool owns = own < segments.parts;
  const bool aside = owns && !stays(w, reduction, segments.of(operand, own).data(), result.data());
  for (uint64_t at = 0; at < longest; at += cell) {
    co_await c.next_step(area);
    for (int i = 0; i < segments.parts; ++i) {
      if (i == own && !aside) continue;  // nobody else reads it
      const ConstBytes from = part(segments.of(operand, i), at, cell);
      w.write(Bytes(w.area(w.rank(), area) + cell * static_cast<uint64_t>(i), from.size()), from,
              owners.owner(i, w.size()));
    }
    c.publish();
    if (!owns) continue;
    co_await c.all_published();
    const Bytes sum = part(result, at, cell);
    const std::byte* const mine = segments.of(operand, own).data() + at;
    const uint64_t offset = cell * static_cast<uint64_t>(own);
    combine_areas(w, reduction, sum.data(), aside ? w.area(w.rank(), area) + offset : mine, offset, sum.size() / element,
                  area);
  }
}

Task share_on_node(Comm& c, NodeOwners owners, Bytes vector) {
  NodeWindow& w = c.node();
  const Segments segments = owners.segments;
  const int own = owners.owned_by(w.rank(), w.size());
  if (w.size() == 1) co_return;
  const uint64_t longest = segments.bytes(0);
  const uint64_t piece = shared_piece(longest, w.area_bytes(), w.crowded());
  for (uint64_t at = 0; at < longest; at += piece) {
    const bool alone = segments.parts == 1;
    if (alone)
      co_await c.next_sole_step(piece);
    else
      co_await c.next_step(piece);
    if (own < segments.parts) {
      const ConstBytes mine = part(segments.of(vector, own), at, piece);
      w.write(Bytes(alone ? w.sole_area(w.rank(), piece) : w.area(w.rank(), piece), mine.size()), mine);
    }
    c.publish();
    for (int i = 1; i <= segments.parts; ++i) {
      const int segment = (own + i) % segments.parts, owner = owners.owner(segment, w.size());
      if (owner == w.rank()) continue;
      co_await c.published(owner);
      const Bytes to = part(segments.of(vector, segment), at, piece);
      c.copy(to, ConstBytes(alone ? w.sole_area(owner, piece) : w.area(owner, piece), to.size()));
    }
  }
}

double reduce_on_node_us(const Shape& s, const CostModel& m, int owners) {
  const double n = static_cast<double>(s.bytes), area = static_cast<double>(s.area_bytes);
  const CostModel mine = model_of_owners(s, m, owners);
  return (1 + n / area) * m.step_us(s.most_local) + m.copies_us(n) + mine.copies_us(n * s.most_local / owners);
}

double share_on_node_us(const Shape& s, const CostModel& m, int owners) {
  const double n = static_cast<double>(s.bytes), segment = n / owners;
  const double pieces = 1 + n / static_cast<double>(s.area_bytes) / owners;
  return pieces * m.step_us(owners) + model_of_owners(s, m, owners).copies_us(segment) + m.shared_copies_us(n);
}

Shape counterparts_of(Shape s, int owners) {
  s.p = s.nodes;
  s.bytes = (s.bytes + static_cast<uint64_t>(owners) - 1) / static_cast<uint64_t>(owners);
  s.fewest_local = s.most_local = 1;
  return s;
}

CostModel model_of_owners(const Shape& s, CostModel m, int owners) {
  const double sharing = std::max(1.0, m.sharing * owners / s.most_local);
  if (m.by_ranks) m.beta_us *= std::min(1.0, 1.5 * sharing / m.sharing);
  m.sharing = sharing;
  return m;
}

}  // namespace ibcoll
