// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/comm/window_memory.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

namespace ibcoll {
namespace {

constexpr int64_t kAll = std::numeric_limits<int64_t>::max();

}  // namespace

Status WindowMemory::prepare(NodeMemory& memory, uint64_t offset, uint64_t tag, int ranks, uint64_t area_bytes) {
  if (Status status = memory.back(offset, WindowControl::bytes(ranks)); !status.ok()) return status;
  Result<std::byte*> base = memory.at(offset, footprint(ranks, area_bytes));
  if (!base.ok()) return base.status();
  auto* const control = reinterpret_cast<WindowControl*>(*base);
  for (int i = 0; i < ranks; ++i) {
    control->members[i].failure.store(0, std::memory_order_relaxed);
    control->members[i].presence.store(tag << 2 | WindowControl::kAwaited, std::memory_order_relaxed);
  }
  control->backed.store(0, std::memory_order_relaxed);
  control->called_off.store(0, std::memory_order_relaxed);
  control->state.store(tag << 2 | WindowControl::kUnused, std::memory_order_release);
  return {};
}

void WindowMemory::place(std::byte* base, uint64_t offset) noexcept {
  offset_ = offset;
  control_ = reinterpret_cast<WindowControl*>(base);
  lines_ = reinterpret_cast<Line*>(base + WindowControl::bytes(ranks()));
  short_areas_ = reinterpret_cast<std::byte*>(lines_ + ranks_ * kLines);
  areas_ = short_areas_ + ranks_ * kShortAreas * kShortStride;
}

bool WindowMemory::make_usable(uint64_t bytes) noexcept {
  if (usable_ < 0 && !make_lines()) return false;
  if (static_cast<int64_t>(bytes) <= usable_) return true;
  uint64_t backed = control_->backed.load(std::memory_order_acquire);
  if (backed < std::min(bytes, area_bytes_)) {
    // More each time, so that few calls ask for memory; areas begin at no page, so the first part of one may be less
    // than that.
    const uint64_t wanted =
        std::min(area_bytes_, std::max<uint64_t>(4096, std::bit_ceil(std::min(bytes, area_bytes_))));
    trouble_ = back_areas(wanted);
    if (!trouble_.ok()) return false;
    while (backed < wanted && !control_->backed.compare_exchange_weak(backed, wanted, std::memory_order_acq_rel,
                                                                      std::memory_order_acquire)) {
    }
    backed = std::max(backed, wanted);
  }
  usable_ = backed >= area_bytes_ ? kAll : static_cast<int64_t>(std::max(backed, kInlineBytes));
  return true;
}

// Each rank asks for itself: what has memory already costs a system call.
bool WindowMemory::make_short_areas() noexcept {
  if (usable_ < 0 && !make_lines()) return false;
  const auto start = static_cast<uint64_t>(short_areas_ - reinterpret_cast<std::byte*>(control_));
  if (memory_) trouble_ = memory_->back(offset_ + start, static_cast<uint64_t>(areas_ - short_areas_));
  has_short_areas_ = trouble_.ok();
  return has_short_areas_;
}

bool WindowMemory::make_lines() noexcept {
  if (!memory_) {  // alone on the node: the kernel makes its pages as they are touched
    usable_ = kAll;
    return true;
  }
  uint64_t state = control_->state.load(std::memory_order_acquire);
  const uint64_t tag = state & ~uint64_t{3};
  if ((state & 3) == WindowControl::kUnused &&
      control_->state.compare_exchange_strong(state, tag | WindowControl::kMaking, std::memory_order_acq_rel)) {
    trouble_ = back_lines();
    state = tag | (trouble_.ok() ? WindowControl::kUsed : WindowControl::kUnused);
    control_->state.store(state, std::memory_order_release);
  }
  if ((state & 3) != WindowControl::kUsed) return false;
  usable_ = static_cast<int64_t>(kInlineBytes);
  return true;
}

Status WindowMemory::back_lines() noexcept {
  const uint64_t bytes = ranks_ * kLines * sizeof(Line);
  if (memory_->back_all(offset_, footprint(ranks(), area_bytes_)))
    control_->backed.store(area_bytes_, std::memory_order_relaxed);
  else if (Status status = memory_->back(offset_ + WindowControl::bytes(ranks()), bytes); !status.ok())
    return status;
  if (!memory_->zeros(offset_)) std::memset(static_cast<void*>(lines_), 0, bytes);
  return {};
}

Status WindowMemory::back_areas(uint64_t bytes) noexcept {
  const auto start = static_cast<uint64_t>(areas_ - reinterpret_cast<std::byte*>(control_));
  for (int local = 0; local < ranks(); ++local)
    for (uint64_t bank = 0; bank < kBanks; ++bank)
      if (Status status = memory_->back(offset_ + start + area_offset(local, bank), bytes); !status.ok()) return status;
  return {};
}

}  // namespace ibcoll
