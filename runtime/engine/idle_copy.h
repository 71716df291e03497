// SPDX-License-Identifier: BSD-3-Clause
// A copy of a collective that nothing waits for: it is done in slices, while nothing else can be.
#pragma once

#include <algorithm>
#include <cstdint>

#include "runtime/base/buffer.h"
#include "runtime/comm/comm.h"

namespace ibcoll {

class IdleCopy {
 public:
  static constexpr uint64_t kSlice = 32 << 10;

  bool done() const noexcept { return from_.empty(); }
  void begin(Bytes to, ConstBytes from) noexcept { to_ = to, from_ = from; }
  // The collective has ended, or a new run begins.
  void forget() noexcept { from_ = {}; }
  // At most `bytes` of what is left.
  void copy(uint64_t bytes = kSlice) noexcept {
    const uint64_t now = std::min<uint64_t>(bytes, from_.size());
    Comm::copy(to_.first(now), from_.first(now));
    to_ = to_.subspan(now);
    from_ = from_.subspan(now);
  }
  void copy_rest() noexcept { copy(from_.size()); }

 private:
  Bytes to_;  // what is left
  ConstBytes from_;
};

}  // namespace ibcoll
