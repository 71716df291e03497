// SPDX-License-Identifier: BSD-3-Clause
// How a node window gets its memory, and who gives it back.
#include "runtime/comm/node_window.h"

#include <bit>
#include <limits>

namespace ibcoll {
namespace {

constexpr int64_t kAll = std::numeric_limits<int64_t>::max();

}  // namespace

Status NodeWindow::prepare(NodeMemory& memory, uint64_t offset, uint64_t tag, int ranks, uint64_t area_bytes) {
  if (Status status = memory.back(offset, control_bytes(ranks)); !status.ok()) return status;
  Result<std::byte*> base = memory.at(offset, footprint(ranks, area_bytes));
  if (!base.ok()) return base.status();
  auto* const control = reinterpret_cast<Control*>(*base);
  for (int i = 0; i < ranks; ++i) {
    control->members[i].left.store(0, std::memory_order_relaxed);
    control->members[i].presence.store(tag << 2 | kAwaited, std::memory_order_relaxed);
  }
  control->backed.store(0, std::memory_order_relaxed);
  control->called_off.store(0, std::memory_order_relaxed);
  control->state.store(tag << 2 | Control::kUnused, std::memory_order_release);
  return {};
}

// Who comes says so, then looks whether it is called off; who calls it off does that, then looks who has come. The
// memory may be another team's by then: the tags differ.
Status NodeWindow::enter(NodeMemory& memory, const Place& place) {
  Result<std::byte*> base = memory.at(place.offset, footprint(static_cast<int>(place.jobs.size()), place.area_bytes));
  if (!base.ok()) return base.status();
  auto* const control = reinterpret_cast<Control*>(*base);
  uint64_t awaited = place.tag << 2 | kAwaited;
  const bool there = control->members[place.rank].presence.compare_exchange_strong(awaited, place.tag << 2 | kThere);
  if (there && control->called_off.load() == 0) return {};
  return error(IBCOLL_ERR_PEER_FAILED,
               "rank {}: another rank of the new team found a failure while the team was made; make it without the "
               "ranks that have failed",
               place.jobs[static_cast<size_t>(place.rank)]);
}

bool NodeWindow::leave_for_good(NodeMemory& memory, const Place& place, bool failed) {
  const uint64_t bytes = footprint(static_cast<int>(place.jobs.size()), place.area_bytes);
  const uint64_t tag = place.tag << 2;
  Result<std::byte*> base = memory.at(place.offset, bytes);
  if (!base.ok()) return true;  // it was there before
  auto* const control = reinterpret_cast<Control*>(*base);
  uint64_t state = control->state.load(std::memory_order_acquire);
  // Somebody else has given it back; it may be another team's by now.
  if ((state & ~uint64_t{3}) != tag || (state & 3) == Control::kReleased) return true;
  for (uint64_t own = control->members[place.rank].presence.load();
       (own & ~uint64_t{3}) == tag && own != (tag | kGone);)
    control->members[place.rank].presence.compare_exchange_weak(own, tag | kGone);
  if (failed) control->called_off.store(1);
  for (size_t i = 0; i < place.jobs.size(); ++i) {
    const uint64_t presence = control->members[i].presence.load();
    const bool never_comes = presence == (tag | kAwaited) && control->called_off.load() != 0;
    if (presence != (tag | kGone) && !never_comes && memory.alive(place.jobs[i])) return false;
  }
  if (control->state.compare_exchange_strong(state, tag | Control::kReleased, std::memory_order_acq_rel))
    memory.release(place.offset, bytes);
  return true;
}

// A step needs `bytes` of its areas, or lines alone. False: another rank is about to see to it, or trouble().
bool NodeWindow::make_usable(uint64_t bytes) noexcept {
  if (usable_ < 0 && !make_lines()) return false;
  if (static_cast<int64_t>(bytes) <= usable_) return true;
  uint64_t backed = control_->backed.load(std::memory_order_acquire);
  if (backed < std::min(bytes, area_bytes_)) {
    // More each time, so that it is not asked for often; areas begin at no page, so the first part of one may be less
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

bool NodeWindow::make_lines() noexcept {
  if (!memory_) {  // alone on the node: the kernel makes its pages as they are touched
    usable_ = kAll;
    return true;
  }
  uint64_t state = control_->state.load(std::memory_order_acquire);
  const uint64_t tag = state & ~uint64_t{3};
  if ((state & 3) == Control::kUnused &&
      control_->state.compare_exchange_strong(state, tag | Control::kMaking, std::memory_order_acq_rel)) {
    trouble_ = back_lines();
    state = tag | (trouble_.ok() ? Control::kUsed : Control::kUnused);
    control_->state.store(state, std::memory_order_release);
  }
  if ((state & 3) != Control::kUsed) return false;
  usable_ = static_cast<int64_t>(kInlineBytes);
  return true;
}

Status NodeWindow::back_lines() noexcept {
  const uint64_t bytes = jobs_.size() * kLines * sizeof(Line);
  const auto start =
      static_cast<uint64_t>(reinterpret_cast<std::byte*>(lines_) - reinterpret_cast<std::byte*>(control_));
  if (memory_->back_all(offset_, footprint(size(), area_bytes_)))
    control_->backed.store(area_bytes_, std::memory_order_relaxed);
  else if (Status status = memory_->back(offset_ + start, bytes); !status.ok())
    return status;
  std::memset(static_cast<void*>(lines_), 0, bytes);
  return {};
}

Status NodeWindow::back_areas(uint64_t bytes) noexcept {
  const auto start = static_cast<uint64_t>(areas_ - reinterpret_cast<std::byte*>(control_));
  for (int local = 0; local < size(); ++local)
    for (uint64_t bank = 0; bank < kBanks; ++bank)
      if (Status status = memory_->back(offset_ + start + area_offset(local, bank), bytes); !status.ok()) return status;
  return {};
}

}  // namespace ibcoll
