// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/context/node_windows.h"

#include <algorithm>
#include <utility>

namespace ibcoll {

uint64_t NodeWindows::bytes(int locals) const noexcept { return WindowMemory::footprint(locals, area_bytes_); }

Result<uint64_t> NodeWindows::allocate(uint64_t tag, int locals) {
  Result<uint64_t> made = job_.memory->allocate(bytes(locals));
  if (!made.ok()) {
    give_back(left_.size());
    made = job_.memory->allocate(bytes(locals));
  }
  if (!made.ok()) return made.status();
  Status status = WindowMemory::prepare(*job_.memory, *made, tag, locals, area_bytes_);
  if (status.ok()) return made;
  release(*made, locals);
  return status;
}

void NodeWindows::release(uint64_t offset, int locals) noexcept { job_.memory->release(offset, bytes(locals)); }

Result<LoneWindow> NodeWindows::allocate_lone(int job_rank) const {
  Result<void*> made = allocate_memory(bytes(1));
  if (!made.ok())
    return error(IBCOLL_ERR_NO_MEMORY, "rank {}: no memory for the node window of a new team: {}", job_rank,
                 made.status().text());
  return LoneWindow(static_cast<std::byte*>(*made));
}

Result<std::byte*> NodeWindows::enter(const WindowLocation& place) {
  Result<std::byte*> base = job_.memory->at(place.offset, bytes(static_cast<int>(place.jobs.size())));
  if (!base.ok()) return base;
  if (Status entered = WindowPresence::enter(*job_.memory, place); !entered.ok()) return entered;
  return base;
}

void NodeWindows::leave_unmade(std::list<LeftWindow> window, uint64_t offset) noexcept {
  if (window.empty()) return;
  WindowLocation& place = window.front().place;
  place.offset = offset != kNoWindow ? offset : job_.memory->allocated_last(place.jobs.front());
  if (place.offset != ibcoll::NodeMemory::kNowhere) leave(std::move(window), true);
}

void NodeWindows::leave(std::list<LeftWindow> window, bool failed) noexcept {
  if (!window.empty()) window.front().failed = failed;
  left_.splice(left_.begin(), window);
  give_back_some();
}

void NodeWindows::give_back(size_t most) noexcept {
  for (most = std::min(most, left_.size()); most > 0; --most) {
    const LeftWindow& window = left_.front();
    if (WindowPresence::leave(*job_.memory, window.place, window.failed))
      left_.pop_front();
    else
      left_.splice(left_.end(), left_, left_.begin());
  }
}

}  // namespace ibcoll
