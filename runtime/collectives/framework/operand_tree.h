// SPDX-License-Identifier: BSD-3-Clause
// Operands that come in any order, combined in a fixed one: neighbours first, then those at distance 2, 4, ..., of the
// virtual ranks of PowerOfTwo, as recursive doubling combines them. So the bits do not depend on which rank is late,
// and when the last operand comes, ceil(lg p) operations at most are left. The operation need not commute.
#pragma once

#include <span>

#include "runtime/collectives/framework/halving.h"

namespace ibcoll {

class OperandTree {
 public:
  // `levels`: a byte for each operand, for the tree's use.
  explicit OperandTree(std::span<uint8_t> levels) noexcept : pairs_(static_cast<int>(levels.size())), levels_(levels) {
    std::fill(levels.begin(), levels.end(), uint8_t{0});
  }

  // Operand i is here. Calls combine(lower, upper), whose result replaces the upper operand.
  template <class Combine>
  void take(int i, const Combine& combine) {
    if (pairs_.in_pair(i)) {
      levels_[static_cast<size_t>(i)] = 1;
      if (levels_[static_cast<size_t>(i ^ 1)] == 0) return;
      combine(i & ~1, i | 1);
    }
    // The level of the last one of 2^k consecutive virtual ranks is k + 2 when their operands have been combined.
    int v = pairs_.virtual_of(i);
    uint8_t level = 2;
    for (int distance = 1; distance < pairs_.core(); distance *= 2, ++level) {
      level_of(v) = level;
      if (level_of(v ^ distance) != level) return;
      combine(pairs_.rank_of(v & ~distance), pairs_.rank_of(v | distance));
      v |= distance;
    }
  }

 private:
  uint8_t& level_of(int v) noexcept { return levels_[static_cast<size_t>(pairs_.rank_of(v))]; }

  PowerOfTwo pairs_;
  std::span<uint8_t> levels_;
};

}  // namespace ibcoll
