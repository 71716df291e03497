// SPDX-License-Identifier: BSD-3-Clause
// How blocks move up a tree. At the root they land in place where the blocks of a message are neighbours there, too;
// else in a buffer of its own, from which they are copied when it has landed.
#include <bit>

#include "runtime/collectives/gather/root_side.h"

namespace ibcoll::gather {
namespace {

// Own blocks up to this size are copied between those of the children, so that one message carries all.
constexpr uint64_t kCopied = 4096;

// The announcements of what the last add() found; -1: the collective has failed.
int announce_loads(Comm& c, RootSide& root, const Args& a) {
  for (const int unit : root.added()) {
    Load& load = root.load(unit);
    const auto each_stretch = [&](auto each) { root.each_stretch(unit, each); };
    if (!announce_stretches(c, unit, load.bytes, a.recv, each_stretch, &load.landing)) return -1;
  }
  return static_cast<int>(root.added().size());
}

}  // namespace

Task send_up(Comm& c, Trees trees, CubeData about, ConstBytes own) {
  auto* const place = c.scratch_array<Place>(1);
  if (!place) co_return;
  place->count = 0;
  co_await find_place(c, trees, about, place);
  const uint64_t below = place->below(), total = below + own.size();
  if (below == 0) {
    c.put(place->parent, own);
    co_await c.flushed();
    co_return;
  }
  const bool copied = own.size() <= kCopied;
  std::byte* const buffer = c.scratch(copied ? total : below);
  if (!buffer) co_return;
  std::byte* const mine = place->lay_out(c.rank(), buffer, copied ? own.size() : 0);
  for (int i = 0; i < place->count; ++i)
    c.announce(place->children[i].unit, Bytes(place->children[i].at, place->children[i].bytes));
  co_await c.received();
  if (copied) {
    c.copy(Bytes(mine, own.size()), own);
    c.put(place->parent, ConstBytes(buffer, total));
  } else {
    c.put_piece(place->parent, ConstBytes(buffer, mine), total);
    c.put_piece(place->parent, own, total);
    c.put_piece(place->parent, ConstBytes(static_cast<const std::byte*>(mine), buffer + below), total);
  }
  co_await c.flushed();
}

// What lands from a unit beside the root's cube of a level is first, where sizes are told, what it tells of its cube.
Task collect(Comm& c, Trees trees, Args a, Comm* team) {
  RootSide root(*team, trees, a.recv_to_read(), c.size());
  auto* const told = c.scratch_array<CubeData>(Place::kMost);
  if (!root || !told) co_return;
  const bool tells = trees.sizes != Sizes::kEqual;
  uint32_t known = 0;  // levels whose cubes have told
  int open = 0;
  for (int level = 0; level < ceil_log2(c.size()); ++level) {
    const Cube cube = Cube::beside(trees.root, level, c.size());
    if (cube.empty()) continue;
    if (tells) {
      c.announce(trees.teller(cube), Bytes(reinterpret_cast<std::byte*>(&told[level]), sizeof(CubeData)));
      c.watch(trees.teller(cube));
      ++open;
      continue;
    }
    root.add(level, nullptr);
    const int announced = announce_loads(c, root, a);
    if (announced < 0) co_return;
    open += announced;
  }
  while (open-- > 0) {
    const int unit = co_await c.next_landing();
    const int level = std::bit_width(static_cast<unsigned>(unit ^ trees.root)) - 1;
    if (!tells || known >> level & 1) {
      copy_out(root.load(unit).landing, a.recv, [&](auto each) { root.each_block(unit, each); });
      continue;
    }
    known |= 1u << level;
    if (!root.add(level, &told[level])) co_return;
    const int announced = announce_loads(c, root, a);
    if (announced < 0) co_return;
    open += announced;
  }
}

}  // namespace ibcoll::gather
