// SPDX-License-Identifier: BSD-3-Clause
// Peers on the same machine are watched as processes, which is quicker than what networks notice. UCX's own check of shared
// memory peers even misses some deaths: those of peers that only ever sent. And a process that was killed may take long to
// end, while its network device answers for it: the kernel waits for the device.
#pragma once

#include <poll.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/status.h"

namespace ibcoll {

// Tells a process apart from all others that ever ran under this kernel. Travels with the address.
struct IBCOLL_MODULE_API ProcessId {
  uint64_t machine = 0;  // kernel and PID namespace; 0: not known
  int64_t pid = 0;
  uint64_t start = 0;  // when it started, so that a reused PID is not taken for it

  static ProcessId own();
};
static_assert(sizeof(ProcessId) == 24);

class IBCOLL_MODULE_API ProcessWatch {
 public:
  ProcessWatch() : own_(ProcessId::own()) {}
  ~ProcessWatch();
  ProcessWatch(const ProcessWatch&) = delete;
  ProcessWatch& operator=(const ProcessWatch&) = delete;

  const ProcessId& own() const { return own_; }
  // From now on ended() looks at the process of this rank. Nothing happens for processes of other machines.
  void add(int rank, const ProcessId& id);
  void remove(int rank);
  // Ranks whose processes have ended; each is removed from the watch.
  std::vector<int> ended();

 private:
  void remove_at(size_t i);

  const ProcessId own_;
  std::vector<pollfd> handles_;  // pidfds; -1: had ended when it was added
  std::vector<int> ranks_;       // in the same order
  std::vector<int64_t> pids_;
  std::chrono::steady_clock::time_point next_look_{};
};

}  // namespace ibcoll
