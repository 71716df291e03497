// SPDX-License-Identifier: BSD-3-Clause
// How blocks move up a tree. At the root a message lands in place if its blocks are neighbours there, too; else in a
// buffer of its own, from which they are copied.
#include <bit>

#include "runtime/collectives/gather/root_side.h"

namespace ibcoll::gather {
namespace {

// Own blocks up to this size are copied between those of the children, so that one message carries all.
constexpr uint64_t kCopied = 4096;

// Announces the messages that the last add() found, and returns their number; -1: the collective has failed.
int announce_messages(Comm& c, RootSide& root, const Args& a) {
  for (const int unit : root.added()) {
    RootMessage& message = root.message(unit);
    const auto each_stretch = [&](auto each) { root.each_stretch(unit, each); };
    if (!announce_stretches(c, unit, message.bytes, a.recv, each_stretch, &message.landing)) return -1;
  }
  return static_cast<int>(root.added().size());
}

}  // namespace

Task send_up(Comm& c, Trees trees, CubeData about, ConstBytes own) {
  auto* const position = c.scratch_array<Position>(1);
  if (!position) co_return;
  position->count = 0;
  co_await find_position(c, trees, about, position);
  const uint64_t below = position->below(), total = below + own.size();
  if (below == 0) {
    c.put(position->parent, own);
    co_await c.flushed();
    co_return;
  }
  const bool copied = own.size() <= kCopied;
  std::byte* const buffer = c.scratch(copied ? total : below);
  if (!buffer) co_return;
  std::byte* const mine = position->lay_out(c.rank(), buffer, copied ? own.size() : 0);
  for (int i = 0; i < position->count; ++i)
    c.announce(position->children[i].unit, Bytes(position->children[i].at, position->children[i].bytes));
  co_await c.received();
  if (copied) {
    c.copy(Bytes(mine, own.size()), own);
    c.put(position->parent, ConstBytes(buffer, total));
  } else {
    c.put_piece(position->parent, ConstBytes(buffer, mine), total);
    c.put_piece(position->parent, own, total);
    c.put_piece(position->parent, ConstBytes(static_cast<const std::byte*>(mine), buffer + below), total);
  }
  co_await c.flushed();
}

// Where sizes are irregular, the first message of each level's neighbour cube is its report, and then come its blocks.
Task collect(Comm& c, Trees trees, Args a, Comm* team) {
  RootSide root(*team, trees, a.recv_to_read(), c.size());
  auto* const reports = c.scratch_array<CubeData>(Position::kMost);
  if (!root || !reports) co_return;
  const bool irregular = trees.sizes != Sizes::kEqual;
  uint32_t known = 0;  // levels whose cubes have reported
  int expected = 0;
  for (int level = 0; level < ceil_log2(c.size()); ++level) {
    const Cube cube = Cube::beside(trees.root, level, c.size());
    if (cube.empty()) continue;
    if (irregular) {
      c.announce(trees.reporter(cube), Bytes(reinterpret_cast<std::byte*>(&reports[level]), sizeof(CubeData)));
      c.watch(trees.reporter(cube));
      ++expected;
      continue;
    }
    root.add(level, nullptr);
    const int announced = announce_messages(c, root, a);
    if (announced < 0) co_return;
    expected += announced;
  }
  while (expected-- > 0) {
    const int unit = co_await c.next_landing();
    const int level = std::bit_width(static_cast<unsigned>(unit ^ trees.root)) - 1;
    if (!irregular || known >> level & 1) {
      copy_out(root.message(unit).landing, a.recv, [&](auto each) { root.each_block(unit, each); });
      continue;
    }
    known |= 1u << level;
    if (!root.add(level, &reports[level])) co_return;
    const int announced = announce_messages(c, root, a);
    if (announced < 0) co_return;
    expected += announced;
  }
}

}  // namespace ibcoll::gather
