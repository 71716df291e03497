// SPDX-License-Identifier: BSD-3-Clause
// The trees along which gather(v) and scatter(v) move blocks. Units (ranks, or the nodes of a team) form ordered cubes:
// units [k 2^d, (k + 1) 2^d), cut at p. Two neighbours of level d make the cube of level d + 1, and one of them sends
// all that it has to the other. So each message holds blocks of neighbours, in rank order, and no buffer is reordered.
// The root always receives: it gets one message from its neighbour cube of each level, and more from units that leave
// the tree and send straight to it.
// Source: Traeff, "Practical, linear-time, fully distributed algorithms for irregular gather and scatter".
#pragma once

#include <algorithm>

#include "runtime/base/hash.h"
#include "runtime/collectives/framework/algorithm.h"

namespace ibcoll::gather {

// Units [from, to).
struct Cube {
  int from = 0;
  int to = 0;
  // The cube of a level that has this unit, or its neighbour, which may be empty.
  static Cube of(int unit, int level, int p) { return at(unit >> level, level, p); }
  static Cube beside(int unit, int level, int p) { return at(unit >> level ^ 1, level, p); }
  static Cube at(int64_t index, int level, int p) {
    const int64_t from = index << level;
    return {static_cast<int>(std::min<int64_t>(p, from)),
            static_cast<int>(std::min(p + int64_t{0}, from + (int64_t{1} << level)))};
  }
  bool empty() const { return from >= to; }
  bool has(int unit) const { return from <= unit && unit < to; }
  // The unit that exchanges with other cubes while the tree is built.
  int fixed_root() const { return to - 1; }
};

// With it a wrong size of any block changes a sum over many blocks.
inline uint64_t weight_of(int rank) { return scramble((static_cast<uint64_t>(rank) + 1) * kGoldenRatio) | 1; }

// The data that one unit knows about a cube: the content of every message of the construction. By the last two fields
// the root compares the sizes with its own list.
struct CubeData {
  uint64_t gather_bytes = 0;  // what the gather root receives: the gather time, without start-ups
  uint64_t root_bytes = 0;    // what the gather root has itself
  uint64_t gather_root = 0;
  uint64_t all_bytes = 0;  // with the blocks that go straight to the root
  uint64_t weighted = 0;   // sum of size times weight of all ranks, modulo 2^64

  uint64_t bytes() const { return gather_bytes + root_bytes; }
  void add(int rank, uint64_t bytes) {
    all_bytes += bytes;
    weighted += bytes * weight_of(rank);
  }
  // Its blocks go straight to the root.
  void leave_tree() { gather_bytes = root_bytes = 0; }
};

// The cube of both: the gather root with the shorter gather time sends to the other one; if they are equal, the one
// with less data.
inline CubeData join(const CubeData& lower, const CubeData& upper) {
  const bool to_lower = lower.gather_bytes != upper.gather_bytes ? lower.gather_bytes > upper.gather_bytes
                                                                 : lower.bytes() >= upper.bytes();
  const CubeData &to = to_lower ? lower : upper, &from = to_lower ? upper : lower;
  return {to.gather_bytes + from.bytes(), to.root_bytes, to.gather_root, lower.all_bytes + upper.all_bytes,
          lower.weighted + upper.weighted};
}

// The ranks of the team as units, or its nodes; blocks of more than `longest` bytes do not travel with their unit.
struct Units {
  const Placement* nodes = nullptr;  // nullptr: unit i is rank i
  uint64_t longest = UINT64_MAX;

  template <typename Each>
  void each_rank(int unit, Each each) const {
    if (!nodes) return each(unit);
    for (const int rank : nodes->ranks_of(unit)) each(rank);
  }
};

// Joins blocks, which each_block visits in rank order, to contiguous stretches of the caller's buffer: calls
// each(offset, bytes) for each stretch.
template <typename EachBlock, typename Each>
void each_stretch_of(const ConstBlocks& blocks, EachBlock each_block, Each each) {
  uint64_t start = 0, end = 0;
  each_block([&](int rank) {
    if (end > start && blocks.offset(rank) != end) each(start, end - start);
    if (end == start || blocks.offset(rank) != end) start = blocks.offset(rank);
    end = blocks.offset(rank) + blocks.size(rank);
  });
  if (end > start) each(start, end - start);
}

// Announces one message of `bytes` bytes from a rank, for blocks of `recv` in these stretches: it lands in place if
// there is one stretch, else in `landing`, from which copy_out() copies them. False: the collective has failed.
template <typename EachStretch>
bool announce_stretches(Comm& c, int from, uint64_t bytes, const Blocks& recv, EachStretch each_stretch,
                        std::byte** landing) {
  int stretches = 0;
  uint64_t start = 0;
  each_stretch([&](uint64_t offset, uint64_t) {
    if (stretches++ == 0) start = offset;
  });
  if (stretches > 1 && !(*landing = c.scratch(bytes))) return false;
  c.announce(from, Bytes(*landing ? *landing : recv.base + start, bytes));
  c.watch(from);
  return true;
}
template <typename EachBlock>
void copy_out(const std::byte* landing, const Blocks& recv, EachBlock each_block) {
  if (!landing) return;
  each_block([&](int rank) {
    Comm::copy(recv[rank], ConstBytes(landing, recv.size(rank)));
    landing += recv.size(rank);
  });
}

struct Child {
  int unit = 0;
  Cube cube;
  uint64_t bytes = 0;
  std::byte* at = nullptr;  // its blocks, in this unit's buffer
};

// The position in the tree of a unit that is not the root. A coroutine may fill it through a pointer.
struct Position {
  static constexpr int kMost = 31;
  int parent = 0;
  int count = 0;
  Child children[kMost];  // innermost cube first

  void add(int unit, Cube cube, uint64_t bytes) { children[count++] = {unit, cube, bytes, nullptr}; }
  uint64_t below() const {
    uint64_t sum = 0;
    for (int i = 0; i < count; ++i) sum += children[i].bytes;
    return sum;
  }
  // Gives each child its part of a buffer in rank order that has `own` bytes of this unit among them; returns where
  // these are.
  std::byte* lay_out(int unit, std::byte* buffer, uint64_t own);
};

// Which unit of a cube gathers it. kBinomial: the lowest one. kOrdered: the one that the sizes demand (Lemma 3), which
// is the lowest one where all blocks have the same size.
enum class TreeShape { kBinomial, kOrdered };
// kEqual: every block has the same size, so no message is needed to find a unit's position. kIrregular: a unit knows
// its own size only; sizes travel before the blocks.
enum class Sizes { kEqual, kIrregular };

struct Trees {
  int root = 0;
  TreeShape shape = TreeShape::kBinomial;
  Sizes sizes = Sizes::kEqual;
  uint64_t block = 0;               // kEqual: bytes of each
  uint64_t threshold = UINT64_MAX;  // kOrdered: cubes with more bytes send straight to the root
  Units units;

  // Each rank of the team is a unit.
  static Trees of_ranks(TreeShape shape, Sizes sizes, const Args& a) {
    return {a.root, shape, sizes, a.bytes, shape == TreeShape::kOrdered ? a.parameter : UINT64_MAX, {}};
  }
  // The units build the tree, by messages.
  bool built() const { return shape == TreeShape::kOrdered && sizes == Sizes::kIrregular; }

  // kEqual: full cubes of this level have more than the threshold; all of the level send straight to the root.
  int straight_level() const {
    const uint64_t unit = units.nodes ? block * static_cast<uint64_t>(units.nodes->most_local()) : block;
    int level = 0;
    while (level < Position::kMost && unit <= threshold >> level) ++level;
    return level;
  }
  // kIrregular: the unit that reports to the root what its neighbour cube has.
  int reporter(Cube cube) const { return built() ? cube.fixed_root() : cube.from; }
};

// The position of this unit, which knows `own` of itself.
Task find_position(Comm& c, Trees trees, CubeData own, Position* position);
// Lemma 3, a part of it.
Task build(Comm& c, Trees trees, CubeData own, Position* position);

// Blocks of this unit, neighbours in rank order, go to the root. Not on the root.
Task send_up(Comm& c, Trees trees, CubeData about, ConstBytes own);
// All units' blocks come to the root, but for its own unit's. `team`: where ranks are a.recv's.
Task collect(Comm& c, Trees trees, Args a, Comm* team);

}  // namespace ibcoll::gather
