// SPDX-License-Identifier: BSD-3-Clause
// How blocks move down a tree: the mirror image of gather/move.cc. The root sends from where the caller has the blocks,
// in pieces where these are no neighbours there, from a packed copy where pieces would be short. A rank without
// children receives in place.
#include "runtime/collectives/gather/root_side.h"
#include "runtime/collectives/scatter/scatter.h"

namespace ibcoll::scatter {
namespace {

using gather::Cube;
using gather::CubeData;
using gather::Place;
using gather::RootSide;
using gather::Sizes;

// Queues the load of a unit; false: the collective has failed.
bool put_load(Comm& c, RootSide& root, int unit, const ConstBlocks& send) {
  return put_stretches(c, unit, root.load(unit).bytes, send, [&](auto each) { root.each_stretch(unit, each); });
}

}  // namespace

Task receive_down(Comm& c, gather::Trees trees, CubeData about, Bytes own) {
  auto* const place = c.scratch_array<Place>(1);
  if (!place) co_return;
  place->count = 0;
  co_await gather::find_place(c, trees, about, place);
  const uint64_t below = place->below(), total = below + own.size();
  if (below == 0) {
    c.announce(place->parent, own);
  } else {
    std::byte* const buffer = c.scratch(total);
    if (!buffer) co_return;
    std::byte* const mine = place->lay_out(c.rank(), buffer, own.size());
    c.announce(place->parent, Bytes(buffer, total));
    co_await c.received_from(place->parent);
    for (int i = place->count; i-- > 0;) {
      if (trees.sizes != Sizes::kEqual) co_await c.ready(place->children[i].unit, place->children[i].bytes);
      c.put(place->children[i].unit, ConstBytes(place->children[i].at, place->children[i].bytes));
    }
    c.copy(own, ConstBytes(mine, own.size()));
  }
  co_await c.received();
  co_await c.flushed();
}

// The largest cube is served first, as its blocks have the longest way. Where cubes tell their sizes, one that has told
// them is in the collective with all its ranks: to wait until it and its unit are ready is no wait for a late rank of
// smaller cubes. Else who is not ready is passed over.
Task distribute(Comm& c, gather::Trees trees, Args a, Comm* team) {
  RootSide root(*team, trees, a.send, c.size());
  auto* const told = c.scratch_array<CubeData>(Place::kMost);
  if (!root || !told) co_return;
  const bool tells = trees.sizes != Sizes::kEqual;
  for (int level = 0; tells && level < ceil_log2(c.size()); ++level) {
    const Cube cube = Cube::beside(trees.root, level, c.size());
    if (!cube.empty())
      c.announce(trees.teller(cube), Bytes(reinterpret_cast<std::byte*>(&told[level]), sizeof(CubeData)));
  }
  for (int level = ceil_log2(c.size()); level-- > 0;) {
    const Cube cube = Cube::beside(trees.root, level, c.size());
    if (cube.empty()) continue;
    if (tells) co_await c.received_from(trees.teller(cube));
    if (!root.add(level, &told[level])) co_return;
    for (const int unit : root.added()) {
      if (tells) co_await c.ready(unit, root.load(unit).bytes);
      if (!put_load(c, root, unit, a.send)) co_return;
    }
  }
  co_await c.flushed();
}

}  // namespace ibcoll::scatter
