// SPDX-License-Identifier: BSD-3-Clause
// For algorithms whose core needs a power of two: the first 2 (p - core) ranks pair up, and each pair acts as one rank. Pairs are
// neighbours, so virtual ranks are in the order of the ranks.
#pragma once

#include <bit>

namespace ibcoll {

struct PowerOfTwo {
  explicit PowerOfTwo(int p) noexcept
      : core(static_cast<int>(std::bit_floor(static_cast<unsigned>(p)))), paired(p - core) {}

  int core;    // virtual ranks
  int paired;  // pairs

  bool in_pair(int rank) const noexcept { return rank < 2 * paired; }
  // The other one of the pair, which is rank + 1, acts for it.
  bool idle(int rank) const noexcept { return in_pair(rank) && rank % 2 == 0; }
  int virtual_of(int rank) const noexcept { return in_pair(rank) ? rank / 2 : rank - paired; }
  // The one that acts.
  int rank_of(int virtual_rank) const noexcept {
    return virtual_rank < paired ? 2 * virtual_rank + 1 : virtual_rank + paired;
  }
};

}  // namespace ibcoll
