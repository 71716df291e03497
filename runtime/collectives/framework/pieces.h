// SPDX-License-Identifier: BSD-3-Clause
// Parts of the vector of a reduction, cut between elements. Pieces are worked on one after the other; of the segments
// of a piece each rank has one.
#pragma once

#include <algorithm>
#include <cstdint>

#include "runtime/collectives/framework/args.h"

namespace ibcoll {

// Most bytes of a vector that an algorithm works on at a time, so that its scratch stays bounded.
constexpr uint64_t kReductionPiece = 4 << 20;

// As many whole elements as fit into `bytes`, at least one.
inline uint64_t whole_elements(uint64_t bytes, uint64_t element) noexcept {
  return std::max<uint64_t>(bytes / element, 1) * element;
}

// The call for a vector that is the operand, and that the result replaces.
inline Args in_place_call(Args a, Bytes vector) noexcept {
  a.in_place = true;
  a.recv.base = vector.data();
  a.send.base = vector.data();
  a.bytes = vector.size();
  a.count = vector.size() / a.reduction.element_bytes();
  return a;
}

// A vector in `parts` segments that lie one after the other: of equal length but for one element, or of any lengths.
struct Segments {
  uint64_t count;    // elements
  uint64_t element;  // bytes
  int parts;
  const uint64_t* starts = nullptr;  // parts + 1 offsets; nullptr: equal segments

  // Offset in bytes of segment i; of `parts`: the end.
  uint64_t start(int i) const noexcept {
    if (starts) return starts[i];
    return static_cast<uint64_t>(i) * (count / static_cast<uint64_t>(parts)) * element + extra(i) * element;
  }
  uint64_t bytes(int i) const noexcept { return start(i + 1) - start(i); }
  uint64_t longest() const noexcept {
    uint64_t most = bytes(0);  // of equal ones the first are the longer ones
    for (int i = 1; starts && i < parts; ++i) most = std::max(most, bytes(i));
    return most;
  }
  template <typename Byte>
  std::span<Byte> of(std::span<Byte> vector, int i) const noexcept {
    return vector.subspan(start(i), bytes(i));
  }

 private:
  // The first count % parts segments have an element more.
  uint64_t extra(int i) const noexcept {
    return std::min(static_cast<uint64_t>(i), count % static_cast<uint64_t>(parts));
  }
};

}  // namespace ibcoll
