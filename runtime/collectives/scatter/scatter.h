// SPDX-License-Identifier: BSD-3-Clause
// How blocks move down the trees of gather/tree.h.
#pragma once

#include "runtime/collectives/gather/tree.h"

namespace ibcoll::scatter {

// Blocks of this unit, neighbours in rank order, come from the root. Not on the root.
Task receive_down(Comm& c, gather::Trees trees, gather::CubeData about, Bytes own);
// All units' blocks go from the root, but for its own unit's. `team`: where ranks are a.send's.
Task distribute(Comm& c, gather::Trees trees, Args a, Comm* team);

// Stretches that are longer on average are sent from where they are, others from a packed copy.
inline constexpr uint64_t kPacked = 4096;

// One message of `bytes` bytes to a rank: the stretches that each_stretch visits. False: the collective has failed.
template <typename EachStretch>
bool put_stretches(Comm& c, int to, uint64_t bytes, const ConstBlocks& send, EachStretch each_stretch) {
  uint64_t stretches = 0;
  each_stretch([&](uint64_t, uint64_t) { ++stretches; });
  if (stretches == 1 || bytes > stretches * kPacked) {
    each_stretch([&](uint64_t offset, uint64_t part) { c.put_piece(to, ConstBytes(send.base + offset, part), bytes); });
    return true;
  }
  std::byte* const packed = c.scratch(bytes);
  if (!packed) return false;
  std::byte* at = packed;
  each_stretch([&](uint64_t offset, uint64_t part) {
    c.copy(Bytes(at, part), ConstBytes(send.base + offset, part));
    at += part;
  });
  c.put(to, ConstBytes(packed, bytes));
  return true;
}

}  // namespace ibcoll::scatter
