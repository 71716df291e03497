// SPDX-License-Identifier: BSD-3-Clause
// The blocks of a v-form in bytes. Most programs call with the same counts again: then they are the same as before.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "runtime/under_mpi/core/call.h"
#include "runtime/under_mpi/core/datatype.h"

namespace ibcoll::under_mpi {

struct BlockArrays {
  std::vector<uint64_t> counts, displacements;
  int64_t lowest = 0;  // displacement of the first byte
  uint64_t bytes = 0;  // of all blocks

  void begin(size_t size) {
    known_ = false;
    counts.assign(size, 0);
    displacements.assign(size, 0);
  }
  // They are no longer what a side says.
  void forget() noexcept { known_ = false; }
  // They are complete, and each block is one run in memory. What `side` points to is copied.
  void remember(const Side& side, const Type& type, size_t size) {
    if (side.types != nullptr || side.counts.wide() || side.displacements.wide()) return;
    const auto* const given = static_cast<const int*>(side.counts.address());
    const auto* const places = static_cast<const int*>(side.displacements.address());
    given_.assign(given, given + size);
    given_.insert(given_.end(), places, places + size);
    layout_ = layout_of(type);
    known_ = true;
  }
  // True: all of the above holds for this side, too.
  bool fit(const Side& side, const Type& type, size_t size) const noexcept {
    if (!known_ || given_.size() != 2 * size || side.types != nullptr || side.counts.wide() ||
        side.displacements.wide() || layout_ != layout_of(type))
      return false;
    const size_t each = size * sizeof(int);
    return std::memcmp(given_.data(), side.counts.address(), each) == 0 &&
           std::memcmp(given_.data() + size, side.displacements.address(), each) == 0;
  }

 private:
  // The properties of a type that decide where blocks lie.
  struct Layout {
    int64_t size = 0, extent = 0, true_lb = 0;
    bool one_run = false;
    bool operator==(const Layout&) const = default;
  };
  static Layout layout_of(const Type& type) noexcept { return {type.size, type.extent, type.true_lb, type.one_run}; }

  bool known_ = false;
  std::vector<int> given_;  // counts, then displacements
  Layout layout_;
};

}  // namespace ibcoll::under_mpi
