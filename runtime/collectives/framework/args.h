// SPDX-License-Identifier: BSD-3-Clause
// What an algorithm is called with: checked, in the words of the papers. p blocks in rank order; sizes in bytes.
#pragma once

#include <algorithm>

#include "runtime/base/buffer.h"
#include "runtime/comm/reduce_ops.h"
#include "runtime/include/ibcoll.h"

namespace ibcoll {

struct Args {
  ibcoll_collective_t collective = IBCOLL_BARRIER;
  bool in_place = false;
  int root = 0;        // bcast
  uint64_t bytes = 0;  // of the buffer (bcast, allreduce)
  uint64_t count = 0;  // elements (allreduce)
  ConstBlocks send;    // alltoall(v): p blocks; otherwise send.base is the one buffer
  Blocks recv;         // alltoall(v), allgather(v): p blocks; otherwise recv.base is the one buffer
  Reduction reduction;

  // allgather(v): this rank's contribution.
  ConstBytes own(int rank) const noexcept {
    return in_place ? ConstBytes(recv[rank]) : ConstBytes(send.base, recv.size(rank));
  }
  // allgather(v): the longest block.
  uint64_t longest(int p) const noexcept {
    return recv.counts ? *std::max_element(recv.counts, recv.counts + p) : recv.bytes;
  }
  // bcast: the buffer, on all ranks.
  Bytes buffer() const noexcept { return {recv.base, bytes}; }
};

}  // namespace ibcoll
