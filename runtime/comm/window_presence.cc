// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/comm/window_presence.h"

#include "runtime/comm/window_memory.h"

namespace ibcoll {

// A rank that comes stores that, then reads whether the window is called off; a rank that calls it off stores that,
// then reads which ranks have come. The memory may be another team's by then: the tags differ.
Status WindowPresence::enter(NodeMemory& memory, const WindowLocation& window) {
  const uint64_t bytes = WindowMemory::footprint(static_cast<int>(window.jobs.size()), window.area_bytes);
  Result<std::byte*> base = memory.at(window.offset, bytes);
  if (!base.ok()) return base.status();
  auto* const control = reinterpret_cast<WindowControl*>(*base);
  const uint64_t tag = window.tag << 2;
  uint64_t awaited = tag | WindowControl::kAwaited;
  const bool there =
      control->members[window.rank].presence.compare_exchange_strong(awaited, tag | WindowControl::kThere);
  if (there && control->called_off.load() == 0) return {};
  return error(IBCOLL_ERR_PEER_FAILED,
               "rank {}: another rank of the new team found a failure while the team was made; make it without the "
               "ranks that have failed",
               window.jobs[static_cast<size_t>(window.rank)]);
}

bool WindowPresence::leave(NodeMemory& memory, const WindowLocation& window, bool failed) {
  const uint64_t bytes = WindowMemory::footprint(static_cast<int>(window.jobs.size()), window.area_bytes);
  const uint64_t tag = window.tag << 2;
  Result<std::byte*> base = memory.at(window.offset, bytes);
  if (!base.ok()) return true;  // it was there before
  auto* const control = reinterpret_cast<WindowControl*>(*base);
  uint64_t state = control->state.load(std::memory_order_acquire);
  // Another rank has returned it; it may be another team's by now.
  if ((state & ~uint64_t{3}) != tag || (state & 3) == WindowControl::kReleased) return true;
  for (uint64_t own = control->members[window.rank].presence.load();
       (own & ~uint64_t{3}) == tag && own != (tag | WindowControl::kGone);)
    control->members[window.rank].presence.compare_exchange_weak(own, tag | WindowControl::kGone);
  if (failed) control->called_off.store(1);
  for (size_t i = 0; i < window.jobs.size(); ++i) {
    const uint64_t presence = control->members[i].presence.load();
    const bool never_comes = presence == (tag | WindowControl::kAwaited) && control->called_off.load() != 0;
    if (presence != (tag | WindowControl::kGone) && !never_comes && memory.alive(window.jobs[i])) return false;
  }
  if (control->state.compare_exchange_strong(state, tag | WindowControl::kReleased, std::memory_order_acq_rel))
    memory.release(window.offset, bytes);
  return true;
}

}  // namespace ibcoll
