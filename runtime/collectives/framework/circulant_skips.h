// SPDX-License-Identifier: BSD-3-Clause
// Distances of a circulant graph: skip(q) = p, skip(k) = ceil(skip(k + 1) / 2), so skip(0) = 1, with q = ceil(lg p).
// Source: Traff and others, arXiv 2312.11236.
#pragma once

#include <array>

#include "runtime/collectives/framework/cost_model.h"

namespace ibcoll {

class CirculantSkips {
 public:
  explicit CirculantSkips(int p) noexcept : rounds_(ceil_log2(p)) {
    skip_[static_cast<size_t>(rounds_)] = p;
    for (int k = rounds_ - 1; k >= 0; --k) skip_[static_cast<size_t>(k)] = ((*this)[k + 1] + 1) / 2;
  }
  int rounds() const noexcept { return rounds_; }
  int operator[](int k) const noexcept { return skip_[static_cast<size_t>(k)]; }

 private:
  int rounds_;
  std::array<int, 33> skip_{};
};

}  // namespace ibcoll
