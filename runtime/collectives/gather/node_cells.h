// SPDX-License-Identifier: BSD-3-Clause
// The blocks of gather(v) and scatter(v) in a step of the node window. Longer ones than longest() do not use it.
// Gather: a rank's line holds the size of its block and, if it is short, the block; a longer block is in the rank's
// (short) area.
// Scatter: the line of the rank that writes holds the sizes of all blocks and, while there is room, the blocks, in rank
// order. A block that has no room there is where the same block of a gather would be.
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

  // ---- scatter: this rank writes the blocks of all others. `block_of`: of a local rank, in rising order; asked of this
  // rank, too.
  template <typename BlockOf>
  void write_others(BlockOf block_of) noexcept {
    uint64_t* const sizes = size_at(window_.rank());
    uint64_t end = table_bytes();
    for (int local = 0; local < window_.size(); ++local) {
      const ConstBytes data = block_of(local);
      if (local == window_.rank()) continue;
      (has_table() ? sizes[local] : *size_at(local)) = data.size();
      if (!fits(data.size())) continue;
      std::byte* const at = find_room(window_.rank(), data.size(), end);
      window_.write(Bytes(at ? at : block(local, data.size()), data.size()), data, local);
    }
  }
  // Of this rank, where `writer` has written it.
  struct Cell {
    uint64_t bytes;
    const std::byte* data;  // of a block that fits
  };
  Cell find(int writer) const noexcept {
    const int own = window_.rank();
    const uint64_t bytes = has_table() ? size_at(writer)[own] : size(own);
    if (!fits(bytes)) return {bytes, nullptr};
    uint64_t end = table_bytes();
    for (int local = 0; has_table() && local < own; ++local)
      if (const uint64_t before = size_at(writer)[local]; local != writer && fits(before))
        (void)find_room(writer, before, end);
    const std::byte* const at = find_room(writer, bytes, end);
    return {bytes, at ? at : block(own, bytes)};
  }

 private:
  static constexpr uint64_t kLine = NodeWindow::kInlineBytes;
  static constexpr uint64_t kBeside = kLine - sizeof(uint64_t);  // bytes of a block beside its size
  static constexpr uint64_t kBeyond = kLine + 1;                 // what is not beside a size is in no line

  uint64_t* size_at(int local) const noexcept { return reinterpret_cast<uint64_t*>(window_.area(local, kLine)); }
  // The sizes of all ranks of the node fit into one line.
  bool has_table() const noexcept { return table_bytes() <= kLine; }
  uint64_t table_bytes() const noexcept { return sizeof(uint64_t) * static_cast<uint64_t>(window_.size()); }
  // The place of the next block in the line of `writer`, which is used up to `end`; nullptr: there is no room for it.
  std::byte* find_room(int writer, uint64_t bytes, uint64_t& end) const noexcept {
    if (end + bytes > kLine) return nullptr;
    std::byte* const at = window_.area(writer, kLine) + end;
    end += bytes;
    return at;
  }

  NodeWindow& window_;
  uint64_t longest_;
};

}  // namespace ibcoll::gather
