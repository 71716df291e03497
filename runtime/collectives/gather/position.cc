// SPDX-License-Identifier: BSD-3-Clause
// Finds the position of a unit in its tree: by Lemma 3 of the paper, or without messages where all sizes are known.
#include "runtime/collectives/gather/tree.h"

namespace ibcoll::gather {
namespace {

uint64_t bytes_of(const Trees& trees, Cube cube) {
  uint64_t ranks = 0;
  for (int unit = cube.from; unit < cube.to; ++unit)
    ranks += trees.units.nodes ? trees.units.nodes->ranks_of(unit).size() : 1;
  return trees.block <= trees.units.longest ? ranks * trees.block : 0;
}

// The lowest unit of each cube gathers it. Where sizes differ, the children still have to report theirs.
void lowest_gathers(int unit, int p, const Trees& trees, Position& position) {
  const bool equal = trees.sizes == Sizes::kEqual;
  const int levels = equal ? trees.straight_level() : Position::kMost;
  position.parent = trees.root;
  for (int level = 0; level < levels; ++level) {
    const Cube beside = Cube::beside(unit, level, p);
    if (beside.has(trees.root)) return;
    if (beside.from < unit) {
      position.parent = beside.from;
      return;
    }
    if (!beside.empty()) position.add(beside.from, beside, equal ? bytes_of(trees, beside) : 0);
  }
}

Bytes bytes_of(CubeData& data) { return {reinterpret_cast<std::byte*>(&data), sizeof data}; }

}  // namespace

std::byte* Position::lay_out(int unit, std::byte* buffer, uint64_t own) {
  std::byte* mine = buffer;
  for (int i = 0; i < count; ++i)
    if (children[i].cube.from < unit) mine += children[i].bytes;
  std::byte *lower = mine, *upper = mine + own;
  for (int i = 0; i < count; ++i) {
    const bool is_lower = children[i].cube.from < unit;
    if (is_lower) lower -= children[i].bytes;
    children[i].at = is_lower ? lower : upper;
    if (!is_lower) upper += children[i].bytes;
  }
  return mine;
}

Task find_position(Comm& c, Trees trees, CubeData own, Position* position) {
  if (trees.built()) {
    co_await build(c, trees, own, position);
    co_return;
  }
  lowest_gathers(c.rank(), c.size(), trees, *position);
  if (trees.sizes == Sizes::kEqual) co_return;
  auto* const reports = c.scratch_array<CubeData>(Position::kMost + 1);
  if (!reports) co_return;
  for (int i = 0; i < position->count; ++i) c.announce(position->children[i].unit, bytes_of(reports[i]));
  CubeData& sum = reports[Position::kMost] = own;
  for (int i = 0; i < position->count; ++i) {
    co_await c.received_from(position->children[i].unit);
    position->children[i].bytes = reports[i].bytes();
    sum.gather_bytes += reports[i].bytes();
    sum.all_bytes += reports[i].all_bytes;
    sum.weighted += reports[i].weighted;
  }
  c.put(position->parent, bytes_of(sum));
}

// Fixed roots exchange what they know of their cubes, and forward what they received to their gather roots. A cube
// without data needs no gather root. The neighbour cube of the root reports to the root and gets no report: all units
// know that the root receives.
Task build(Comm& c, Trees trees, CubeData own, Position* position) {
  const int p = c.size(), self = c.rank();
  auto* const sent = c.scratch_array<CubeData>(2 * Position::kMost);
  if (!sent) co_return;
  CubeData* const received = sent + Position::kMost;
  CubeData cube = own;  // this unit's, as long as it is the fixed or the gather root
  bool gathers = true;
  position->parent = trees.root;
  for (int level = 0;; ++level) {
    if (cube.bytes() > trees.threshold) {
      cube.leave_tree();
      gathers = false;
    }
    const Cube mine = Cube::of(self, level, p), other = Cube::beside(self, level, p);
    if (other.empty()) continue;
    sent[level] = cube;
    const bool fixed = self == mine.fixed_root();
    if (other.has(trees.root)) {
      if (fixed) c.put(trees.root, bytes_of(sent[level]));
      co_return;
    }
    if (!fixed && (!gathers || cube.bytes() == 0)) co_return;
    const int from = fixed ? other.fixed_root() : mine.fixed_root();
    c.announce(from, bytes_of(received[level]));
    if (fixed) c.put(from, bytes_of(sent[level]));
    co_await c.received_from(from);
    const int gather_root = static_cast<int>(cube.gather_root);
    if (fixed && gather_root != self && cube.bytes() > 0) c.put(gather_root, bytes_of(received[level]));
    const bool is_lower = mine.from < other.from;
    cube = is_lower ? join(cube, received[level]) : join(received[level], cube);
    if (!gathers) continue;
    if (cube.gather_root == sent[level].gather_root) {
      position->add(static_cast<int>(received[level].gather_root), other, received[level].bytes());
    } else {
      position->parent = static_cast<int>(cube.gather_root);
      gathers = false;
    }
  }
}

}  // namespace ibcoll::gather
