// SPDX-License-Identifier: BSD-3-Clause
// How blocks move down a tree: the mirror image of gather/move.cc. The root sends from where the caller has the blocks,
// in several segments if these are no neighbours there, or from a packed copy if the segments would be short. A rank
// without children receives in place.
#include "runtime/collectives/gather/root_side.h"
#include "runtime/collectives/scatter/scatter.h"

namespace ibcoll::scatter {
namespace {

using gather::Cube;
using gather::CubeData;
using gather::Position;
using gather::RootSide;
using gather::Sizes;

// Queues the message to a unit; false: the collective has failed.
bool put_message(Comm& c, RootSide& root, int unit, const ConstBlocks& send) {
  return put_stretches(c, unit, root.message(unit).bytes, send, [&](auto each) { root.each_stretch(unit, each); });
}

}  // namespace

Task receive_down(Comm& c, gather::Trees trees, CubeData about, Bytes own) {
  auto* const position = c.scratch_array<Position>(1);
  if (!position) co_return;
  position->count = 0;
  co_await gather::find_position(c, trees, about, position);
  const uint64_t below = position->below(), total = below + own.size();
  if (below == 0) {
    c.announce(position->parent, own);
  } else {
    std::byte* const buffer = c.scratch(total);
    if (!buffer) co_return;
    std::byte* const mine = position->lay_out(c.rank(), buffer, own.size());
    c.announce(position->parent, Bytes(buffer, total));
    co_await c.received_from(position->parent);
    for (int i = position->count; i-- > 0;) {
      if (trees.sizes != Sizes::kEqual) co_await c.ready(position->children[i].unit, position->children[i].bytes);
      c.put(position->children[i].unit, ConstBytes(position->children[i].at, position->children[i].bytes));
    }
    c.copy(own, ConstBytes(mine, own.size()));
  }
  co_await c.received();
  co_await c.flushed();
}

// The largest cube is served first, as its blocks have the longest way. Where sizes are irregular, a cube that has
// reported is in the collective with all its ranks: waiting until it and its unit are ready never waits for a late rank
// of a smaller cube. Otherwise ranks that are not ready are passed over.
Task distribute(Comm& c, gather::Trees trees, Args a, Comm* team) {
  RootSide root(*team, trees, a.send, c.size());
  auto* const reports = c.scratch_array<CubeData>(Position::kMost);
  if (!root || !reports) co_return;
  const bool irregular = trees.sizes != Sizes::kEqual;
  for (int level = 0; irregular && level < ceil_log2(c.size()); ++level) {
    const Cube cube = Cube::beside(trees.root, level, c.size());
    if (!cube.empty())
      c.announce(trees.reporter(cube), Bytes(reinterpret_cast<std::byte*>(&reports[level]), sizeof(CubeData)));
  }
  for (int level = ceil_log2(c.size()); level-- > 0;) {
    const Cube cube = Cube::beside(trees.root, level, c.size());
    if (cube.empty()) continue;
    if (irregular) co_await c.received_from(trees.reporter(cube));
    if (!root.add(level, &reports[level])) co_return;
    for (const int unit : root.added()) {
      if (irregular) co_await c.ready(unit, root.message(unit).bytes);
      if (!put_message(c, root, unit, a.send)) co_return;
    }
  }
  co_await c.flushed();
}

}  // namespace ibcoll::scatter
