// SPDX-License-Identifier: BSD-3-Clause
// Which ranks of a node use a window, and which have failed. The last one that leaves returns its memory.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/comm/window_control.h"
#include "runtime/transport/transport.h"

namespace ibcoll {

// The data about a window that its ranks know before they use it, and after.
struct WindowLocation {
  uint64_t offset = 0;    // in the node's memory
  uint64_t tag = 0;       // that it was prepared with
  std::vector<int> jobs;  // job rank of each local rank; empty: there is no window
  int rank = 0;           // the local one
  uint64_t area_bytes = 0;
};

class WindowPresence {
 public:
  // The local rank is about to use the window. PEER_FAILED: another rank found meanwhile that the team could not be
  // made.
  static Status enter(NodeMemory& memory, const WindowLocation& window);
  // The local rank does not use the window any more. True: its memory is returned, by this rank if it was the last one;
  // a dead rank counts as one that has left. False: other ranks still use it, and one of them will return it; if that
  // one dies, any rank that got false may try again. `failed`: the team has failed, or could not be made; ranks that
  // have not come to the window must not come any more.
  static bool leave(NodeMemory& memory, const WindowLocation& window, bool failed);

  // Sets where the window is, once this is known.
  void place(WindowControl* control, int rank) noexcept {
    control_ = control;
    rank_ = rank;
  }
  // The team has failed on this rank, with this status. To be called before the memory of its calls belongs to their
  // caller again: the exchange comes before what the caller then writes.
  void report_failure(int status) noexcept {
    if (control_) control_->members[rank_].failure.exchange(status, std::memory_order_acq_rel);
  }
  // The failure that a local rank has reported. 0: what was read from its private memory up to now was still what it
  // had published. Reads are system calls, which end before this load begins.
  int failure_of(int local) const noexcept { return control_->members[local].failure.load(std::memory_order_seq_cst); }

 private:
  WindowControl* control_ = nullptr;
  int rank_ = 0;
};

}  // namespace ibcoll
