// SPDX-License-Identifier: BSD-3-Clause
// The arguments of an algorithm: checked, in the words of the papers. p blocks in rank order; sizes in bytes.
#pragma once

#include <algorithm>

#include "runtime/base/buffer.h"
#include "runtime/base/catalog.h"
#include "runtime/comm/reduce/reduction.h"
#include "runtime/include/ibcoll.h"

namespace ibcoll {

// Which of the two views of blocks have sizes, and so which other fields count, follows from the collective's row in
// base/catalog.h. What is significant at the root only is empty elsewhere.
struct Args {
  ibcoll_collective_t collective = IBCOLL_BARRIER;
  bool in_place = false;  // the input is in the receive buffer; of scatter(v), at the root: its block stays where it is
  int root = 0;           // rooted collectives
  uint64_t bytes = 0;     // of this rank's one block: what it sends where send is one block, else what it receives
  uint64_t count = 0;     // elements of that block (reductions)
  uint64_t parameter = 0;  // of the algorithm; see Parameter
  ConstBlocks send;        // p blocks; or base alone: the one block
  Blocks recv;             // the same
  Reduction reduction;
  bool internal = false;     // a call of ibcoll's own: no call of the program fits together with it
  bool fixed_order = false;  // the bits of the result do not depend on which rank comes first

  // The p sizes that all ranks know; nullptr: there are none.
  const uint64_t* known_sizes() const noexcept {
    const Collective& row = kCatalog[collective];
    if (row.sizes != SizesKnown::kToAll) return nullptr;
    return row.reduces() ? send.counts : recv.counts;
  }
  // All ranks know that no byte moves, and that no rank waits for another one.
  bool moves_nothing(int p) const noexcept {
    const Collective& row = kCatalog[collective];
    if (!row.moves_data()) return false;
    if (!row.irregular()) return bytes == 0;
    const uint64_t* const sizes = known_sizes();
    return sizes && std::all_of(sizes, sizes + p, [](uint64_t size) { return size == 0; });
  }
  // gather(v), allgather(v): this rank's contribution.
  ConstBytes own(int rank) const noexcept { return in_place ? ConstBytes(recv[rank]) : ConstBytes(send.base, bytes); }
  // The receive blocks, to be read: what the root of a gather(v) knows of sizes and places.
  ConstBlocks recv_to_read() const noexcept { return {recv.base, recv.bytes, recv.counts, recv.displacements}; }
  // allgather(v): the longest block.
  uint64_t longest(int p) const noexcept {
    return recv.counts ? *std::max_element(recv.counts, recv.counts + p) : recv.bytes;
  }
  // bcast: the buffer, on all ranks. scatter(v), reductions: where this rank's block comes.
  Bytes buffer() const noexcept { return {recv.base, bytes}; }
  // Reductions: operands may be combined in the order in which they come.
  bool any_order() const noexcept { return reduction.op->commutative && (!fixed_order || reduction.exact()); }
  // Reductions of one block (reduce, allreduce, scan, exscan): this rank's operand.
  ConstBytes operand() const noexcept { return {in_place ? recv.base : send.base, bytes}; }
};

}  // namespace ibcoll
