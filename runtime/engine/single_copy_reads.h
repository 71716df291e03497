// SPDX-License-Identifier: BSD-3-Clause
// Single-copy reads between the ranks of a node in one collective: what this rank lends to the others, and what it
// reads of their private memory.
#pragma once

#include <array>
#include <cstdint>

#include "runtime/base/buffer.h"

namespace ibcoll {

class Team;

class SingleCopyReads {
 public:
  explicit SingleCopyReads(Team& team) noexcept : team_(team) {}

  // A new run begins: nothing is lent.
  void reset() noexcept { lent_count_ = 0; }
  // The last two count.
  void lend(ConstBytes memory) noexcept { lent_[lent_count_++ % lent_.size()] = memory; }
  // The bytes that another rank asks for; data() is nullptr where they are not lent.
  ConstBytes lent(uint64_t address, uint64_t bytes) const noexcept;

  enum class Outcome {
    kRead,     // or there was nothing to read
    kRefused,  // by the kernel: the owner has to send the bytes
    kFailed    // and so has the team
  };
  Outcome read(int local, uint64_t address, Bytes into) noexcept;
  // Before this rank publishes, where it has read since it published last: false when a process that it has read from
  // has ended. Then the team has failed.
  bool confirm() noexcept;

 private:
  Team& team_;
  std::array<ConstBytes, 2> lent_;
  uint32_t lent_count_ = 0;
};

}  // namespace ibcoll
