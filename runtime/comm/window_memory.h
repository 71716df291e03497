// SPDX-License-Identifier: BSD-3-Clause
// The layout of lines, short areas and areas of a node window, and how they get memory: when a rank first uses the
// window it gets lines; when it first writes to short areas, these; and of areas either all, or as much of each as
// steps have needed so far.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "runtime/base/status.h"
#include "runtime/comm/window_control.h"
#include "runtime/transport/transport.h"

namespace ibcoll {

class WindowMemory {
 public:
  static constexpr int kBanks = 4;  // of areas
  // Steps with less data may run further ahead.
  static constexpr int kShortAreas = 16;
  static constexpr int kLines = 128;
  static constexpr uint64_t kShortBytes = 8192;                   // of a short area
  static constexpr uint64_t kShortStride = kShortBytes + 5 * 64;  // from one to the next, see kSkew
  static constexpr uint64_t kInlineBytes = 496;                   // of a line

  struct alignas(64) Line {
    std::atomic<uint64_t> published;  // see WindowSteps
    uint32_t digest;
    uint32_t unused;
    std::byte data[kInlineBytes];
  };
  static_assert(sizeof(Line) == 512);

  // Bytes of node memory that a window of `ranks` ranks takes.
  static uint64_t footprint(int ranks, uint64_t area_bytes) noexcept {
    return WindowControl::bytes(ranks) +
           static_cast<uint64_t>(ranks) *
               (kLines * sizeof(Line) + kShortAreas * kShortStride + kBanks * (area_bytes + kSkew));
  }
  // Makes a part of the node's memory, which others may have used, ready for the window of a team of `ranks` ranks
  // here; `tag` is no other team's. Called once, before any rank uses it.
  static Status prepare(NodeMemory& memory, uint64_t offset, uint64_t tag, int ranks, uint64_t area_bytes);

  // `memory`: nullptr for a rank alone on its node.
  WindowMemory(NodeMemory* memory, int ranks, uint64_t area_bytes) noexcept
      : memory_(memory), ranks_(static_cast<uint64_t>(ranks)), area_bytes_(area_bytes) {}
  // `base`: where `memory` has the window that begins at `offset` and is prepared; for a rank alone, zeros.
  void place(std::byte* base, uint64_t offset) noexcept;

  int ranks() const noexcept { return static_cast<int>(ranks_); }
  uint64_t area_bytes() const noexcept { return area_bytes_; }
  NodeMemory& node() noexcept { return *memory_; }
  WindowControl* control() noexcept { return control_; }

  // The lines of one step lie together.
  Line& line(int local, uint64_t step) const noexcept {
    return lines_[step % kLines * ranks_ + static_cast<uint64_t>(local)];
  }
  // The short areas of one step lie together, too.
  std::byte* short_area(int local, uint64_t step) const noexcept {
    return short_areas_ + (step % kShortAreas * ranks_ + static_cast<uint64_t>(local)) * kShortStride;
  }
  std::byte* area(int local, uint64_t step) const noexcept { return areas_ + area_offset(local, step); }

  // There is memory for a step in which each rank publishes at most `bytes` bytes. False: not yet, because another rank
  // is about to provide it, or for the reason in trouble().
  bool ready_for(uint64_t bytes) noexcept {
    if (static_cast<int64_t>(bytes) <= usable_) [[likely]]
      return true;
    return make_usable(bytes);
  }
  // The same for a step in which this rank writes to short areas.
  bool ready_for_short_areas() noexcept { return has_short_areas_ || make_short_areas(); }
  bool has_lines() const noexcept { return usable_ >= 0; }
  // Why ready_for() was false for want of memory; ok: for another reason.
  const Status& trouble() const noexcept { return trouble_; }

 private:
  // Areas do not start at the same set of the caches, of which each page has its own and contiguous ones have
  // neighbouring ones.
  static constexpr uint64_t kSkew = 325 * 64;

  uint64_t area_offset(int local, uint64_t step) const noexcept {
    return (static_cast<uint64_t>(local) * kBanks + step % kBanks) * (area_bytes_ + kSkew);
  }
  [[gnu::noinline]] bool make_usable(uint64_t bytes) noexcept;
  [[gnu::noinline]] bool make_short_areas() noexcept;
  bool make_lines() noexcept;
  Status back_lines() noexcept;
  Status back_areas(uint64_t bytes) noexcept;

  NodeMemory* memory_;
  uint64_t ranks_;
  uint64_t area_bytes_;
  uint64_t offset_ = 0;
  WindowControl* control_ = nullptr;
  Line* lines_ = nullptr;
  std::byte* short_areas_ = nullptr;
  std::byte* areas_ = nullptr;
  // Bytes of each area that have memory, as far as this rank knows; at least those of a line. -1: not even lines.
  int64_t usable_ = -1;
  bool has_short_areas_ = false;
  Status trouble_;
};

}  // namespace ibcoll
