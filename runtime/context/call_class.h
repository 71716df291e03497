// SPDX-License-Identifier: BSD-3-Clause
// Classes of calls of a team: the algorithm that is the fastest for one call of a class is taken for all of them.
#pragma once

#include <bit>
#include <cstdint>

#include "runtime/collectives/framework/algorithm.h"

namespace ibcoll {

// A quarter of an octave is one class. Sizes below 8 are classes of their own.
constexpr uint64_t size_class(uint64_t bytes) noexcept {
  if (bytes < 8) return bytes;
  const auto octave = static_cast<int>(std::bit_width(bytes)) - 1;
  return static_cast<uint64_t>(octave) * 4 + (bytes >> (octave - 2) & 3);
}

// The same on all ranks of the team.
struct CallClass {
  ibcoll_collective_t collective = IBCOLL_BARRIER;
  ibcoll_scheme_t scheme = IBCOLL_SCHEME_AUTO;
  int type = -1;       // of a reduction
  int operation = -1;  // predefined: its index; 0: of the program
  bool commutative = true;
  uint64_t element_bytes = 0;
  uint64_t longest = 0;  // size class of one block, the longest
  uint64_t total = 0;    // and of all p

  bool operator==(const CallClass&) const = default;
};

inline CallClass class_of(const Args& args, ibcoll_scheme_t scheme, const Shape& shape) noexcept {
  CallClass calls{.collective = args.collective, .scheme = scheme};
  if (const ibcoll_op_t op = args.reduction.op) {
    calls.type = static_cast<int>(args.reduction.type);
    calls.operation = op->index + 1;
    calls.commutative = op->commutative;
    calls.element_bytes = args.reduction.element_bytes();
  }
  calls.longest = size_class(shape.bytes);
  calls.total = size_class(shape.total);
  return calls;
}

// All ranks know the class of the call, and each block has bytes.
inline bool has_class(const Args& args, const Shape& shape) noexcept {
  if (shape.p < 2 || !shape.sizes_known) return false;
  return !kCatalog[args.collective].moves_data() || (shape.bytes > 0 && shape.empty_blocks == 0);
}

}  // namespace ibcoll
