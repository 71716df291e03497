// SPDX-License-Identifier: BSD-3-Clause
// Where a unit is in its tree, by Lemma 3 of the paper or without need of it.
#include "runtime/collectives/gather/tree.h"

namespace ibcoll::gather {
namespace {

uint64_t bytes_of(const Trees& trees, Cube cube) {
  uint64_t ranks = 0;
  for (int unit = cube.from; unit < cube.to; ++unit)
    ranks += trees.units.nodes ? trees.units.nodes->ranks_of(unit).size() : 1;
  return trees.block <= trees.units.longest ? ranks * trees.block : 0;
}

// The lowest unit of each cube gathers it. What its children have remains to be told where sizes differ.
void lowest_gathers(int unit, int p, const Trees& trees, Place& place) {
  const bool equal = trees.sizes == Sizes::kEqual;
  const int levels = equal ? trees.straight_level() : Place::kMost;
  place.parent = trees.root;
  for (int level = 0; level < levels; ++level) {
    const Cube beside = Cube::beside(unit, level, p);
    if (beside.has(trees.root)) return;
    if (beside.from < unit) {
      place.parent = beside.from;
      return;
    }
    if (!beside.empty()) place.add(beside.from, beside, equal ? bytes_of(trees, beside) : 0);
  }
}

Bytes bytes_of(CubeData& data) { return {reinterpret_cast<std::byte*>(&data), sizeof data}; }

}  // namespace

std::byte* Place::lay_out(int unit, std::byte* buffer, uint64_t own) {
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

Task find_place(Comm& c, Trees trees, CubeData own, Place* place) {
  if (trees.built()) {
    co_await build(c, trees, own, place);
    co_return;
  }
  lowest_gathers(c.rank(), c.size(), trees, *place);
  if (trees.sizes == Sizes::kEqual) co_return;
  auto* const told = c.scratch_array<CubeData>(Place::kMost + 1);
  if (!told) co_return;
  for (int i = 0; i < place->count; ++i) c.announce(place->children[i].unit, bytes_of(told[i]));
  CubeData& sum = told[Place::kMost] = own;
  for (int i = 0; i < place->count; ++i) {
    co_await c.received_from(place->children[i].unit);
    place->children[i].bytes = told[i].bytes();
    sum.gather_bytes += told[i].bytes();
    sum.all_bytes += told[i].all_bytes;
    sum.weighted += told[i].weighted;
  }
  c.put(place->parent, bytes_of(sum));
}

// Fixed roots exchange what they know of their cubes and tell their gather roots what they heard. A cube without data
// has no gather root that must know. A cube beside the root tells the root, and nobody tells it anything: all know who
// receives.
Task build(Comm& c, Trees trees, CubeData own, Place* place) {
  const int p = c.size(), self = c.rank();
  auto* const said = c.scratch_array<CubeData>(2 * Place::kMost);
  if (!said) co_return;
  CubeData* const heard = said + Place::kMost;
  CubeData cube = own;  // this unit's, as long as it is the fixed or the gather root
  bool gathers = true;
  place->parent = trees.root;
  for (int level = 0;; ++level) {
    if (cube.bytes() > trees.threshold) {
      cube.leave_tree();
      gathers = false;
    }
    const Cube mine = Cube::of(self, level, p), other = Cube::beside(self, level, p);
    if (other.empty()) continue;
    said[level] = cube;
    const bool fixed = self == mine.fixed_root();
    if (other.has(trees.root)) {
      if (fixed) c.put(trees.root, bytes_of(said[level]));
      co_return;
    }
    if (!fixed && (!gathers || cube.bytes() == 0)) co_return;
    const int from = fixed ? other.fixed_root() : mine.fixed_root();
    c.announce(from, bytes_of(heard[level]));
    if (fixed) c.put(from, bytes_of(said[level]));
    co_await c.received_from(from);
    const int gather_root = static_cast<int>(cube.gather_root);
    if (fixed && gather_root != self && cube.bytes() > 0) c.put(gather_root, bytes_of(heard[level]));
    const bool is_lower = mine.from < other.from;
    cube = is_lower ? join(cube, heard[level]) : join(heard[level], cube);
    if (!gathers) continue;
    if (cube.gather_root == said[level].gather_root) {
      place->add(static_cast<int>(heard[level].gather_root), other, heard[level].bytes());
    } else {
      place->parent = static_cast<int>(cube.gather_root);
      gathers = false;
    }
  }
}

}  // namespace ibcoll::gather
