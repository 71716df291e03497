// SPDX-License-Identifier: BSD-3-Clause
// The blocks of gather(v) and scatter(v) in a step of the node window: a rank's line holds the size of its block and, if
// it is short, the block; a longer block is in the rank's (short) area. Longer ones than longest() do not use the window.
#pragma once

#include <algorithm>
#include <cstdint>

#include "runtime/collectives/framework/one_step.h"

namespace ibcoll::gather {

class NodeCells {
 public:
  NodeCells(NodeWindow& window, uint64_t threshold) noexcept
      : window_(window), longest_(longest_of(window, threshold)) {}
  static uint64_t longest_of(const NodeWindow& window, uint64_t threshold) noexcept {
    return std::min(threshold, std::max(window.area_bytes(), kBeside));
  }

  uint64_t longest() const noexcept { return longest_; }
  bool fits(uint64_t bytes) const noexcept { return bytes > 0 && bytes <= longest_; }
  // The argument of next_own_step() for a rank that writes a block of this size, which fits; 0: a size at most.
  static uint64_t step_bytes(uint64_t block) noexcept { return block > kBeside ? std::max(block, kBeyond) : kLine; }

  uint64_t size(int local) const noexcept { return *size_at(local); }
  void write_size(int local, uint64_t bytes) noexcept { *size_at(local) = bytes; }
  // The memory of a block of this size, from or for a local rank.
  std::byte* block(int local, uint64_t bytes) const noexcept {
    return bytes <= kBeside ? window_.area(local, kLine) + sizeof(uint64_t)
                            : window_.own_area(local, std::max(bytes, kBeyond));
  }
  // The size and, where it fits, the block, from or for a local rank; `reader` reads it.
  void write(int local, ConstBytes data, int reader) noexcept {
    write_size(local, data.size());
    if (fits(data.size())) window_.write(Bytes(block(local, data.size()), data.size()), data, reader);
  }
  // A block that fits, of a size that agrees.
  void take(int local, Bytes to) const noexcept { Comm::copy(to, ConstBytes(block(local, to.size()), to.size())); }

 private:
  static constexpr uint64_t kLine = NodeWindow::kInlineBytes;
  static constexpr uint64_t kBeside = kLine - sizeof(uint64_t);  // bytes of a block beside its size
  static constexpr uint64_t kBeyond = kLine + 1;                 // what is not beside a size is in no line

  uint64_t* size_at(int local) const noexcept { return reinterpret_cast<uint64_t*>(window_.area(local, kLine)); }

  NodeWindow& window_;
  uint64_t longest_;
};

}  // namespace ibcoll::gather
