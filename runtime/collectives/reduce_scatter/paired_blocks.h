// SPDX-License-Identifier: BSD-3-Clause
// Blocks of virtual ranks: where a pair of ranks acts as one, it has the blocks of both.
#pragma once

#include "runtime/collectives/framework/halving.h"
#include "runtime/collectives/reduce_scatter/reduce_scatter.h"

namespace ibcoll::reduce_scatter {

struct PairedBlocks {
  PairedBlocks(int p, Packed packed) noexcept : pairs(p), blocks(packed) {}
  PowerOfTwo pairs;
  Packed blocks;

  // The blocks of virtual ranks [from, to).
  Bytes between(int from, int to) const noexcept { return blocks.between(first(from), first(to)); }
  ConstBytes operand_between(int from, int to) const noexcept { return blocks.operand_between(first(from), first(to)); }

 private:
  int first(int virtual_rank) const noexcept { return virtual_rank + std::min(virtual_rank, pairs.pairs()); }
};

// The ranks of pairs get their blocks: those that were idle from those that acted for them.
inline Task hand_over(Comm& c, Packed blocks, PowerOfTwo pairs) {
  if (!pairs.in_pair(c.rank())) co_return;
  if (pairs.idle(c.rank())) {
    c.announce(c.rank() ^ 1, blocks.result_of(c.rank()));
  } else {
    c.put(c.rank() ^ 1, blocks[c.rank() ^ 1]);
    blocks.deliver(c.rank());
  }
  co_await c.received();
  co_await c.flushed();
}

}  // namespace ibcoll::reduce_scatter
