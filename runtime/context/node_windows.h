// SPDX-License-Identifier: BSD-3-Clause
// The node windows of a process's teams: where their memory comes from, and when it is given back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>

#include "runtime/comm/node_window.h"
#include "runtime/comm/window_presence.h"
#include "runtime/context/join.h"
#include "runtime/machine/user_memory.h"

namespace ibcoll {

// The node window of a rank that is alone on its node, in a team some of whose ranks are not.
struct FreeMemory {
  void operator()(std::byte* memory) const noexcept { (void)free_memory(memory); }
};
using LoneWindow = std::unique_ptr<std::byte, FreeMemory>;

// A window of a team that was freed on this rank, not yet by all. It is in a list of its own from when the team is
// made, so that freeing needs no memory.
struct LeftWindow {
  WindowLocation place;
  bool failed = false;
};

class NodeWindows {
 public:
  static constexpr uint64_t kNoWindow = ~uint64_t{0};

  // The job outlives it.
  explicit NodeWindows(JoinedJob& job) noexcept : job_(job) {}
  void set_area_bytes(uint64_t bytes) noexcept { area_bytes_ = bytes; }
  // The bytes of one area of a window.
  uint64_t area_bytes() const noexcept { return area_bytes_; }

  // In the memory of the node, for `locals` ranks; `tag` distinguishes teams. NO_MEMORY.
  Result<uint64_t> allocate(uint64_t tag, int locals);
  // Releases a window that no other rank knows.
  void release(uint64_t offset, int locals) noexcept;
  // In private memory.
  Result<LoneWindow> allocate_lone(int job_rank) const;
  // This rank uses the window at `place` from now on; the window's memory.
  Result<std::byte*> enter(const WindowLocation& place);

  // The team could not be made. `offset`: kNoWindow where this rank does not know it, as the leader of the node may
  // have died before it sent that.
  void leave_unmade(std::list<LeftWindow> window, uint64_t offset) noexcept;
  // This rank has freed the team.
  void leave(std::list<LeftWindow> window, bool failed) noexcept;
  // Gives back windows that all their ranks have left. Ranks that die do not free their teams; the others notice that
  // later. Few are checked: there may be thousands, and each check may be a system call.
  void give_back_some() noexcept { give_back(kFew); }

 private:
  static constexpr size_t kFew = 4;
  uint64_t bytes(int locals) const noexcept;
  void give_back(size_t most) noexcept;

  JoinedJob& job_;
  uint64_t area_bytes_ = 0;
  std::list<LeftWindow> left_;
};

}  // namespace ibcoll
