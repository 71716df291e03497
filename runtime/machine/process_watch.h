// SPDX-License-Identifier: BSD-3-Clause
// Peers on the same machine are watched as processes, which is quicker than what networks notice. UCX's own check of
// shared memory peers even misses some deaths: those of peers that have only sent. And a process that was killed may
// take long to end while its network device still answers for it, as the kernel waits for the device.
//
// A pidfd reports the end of a process. If the kernel or a sandbox has none, or descriptors are short, /proc/PID/stat
// is read instead.
#pragma once

#include <poll.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/status.h"

namespace ibcoll {

// Tells a process apart from all others that ever ran under this kernel. Travels with the address.
struct IBCOLL_MODULE_API ProcessId {
  uint64_t machine = 0;  // kernel and PID namespace; 0: not known
  int64_t pid = 0;
  uint64_t start = 0;  // when it started, so that a reused PID is not taken for it; 0: not known

  static ProcessId own();
  // When the process of this machine with this PID started; 0: there is none, or it has ended and was not waited for.
  // nullopt: a process has that PID, and more is not visible, as where descriptors are short or processes are hidden.
  static std::optional<uint64_t> start_of(int64_t pid);
};
static_assert(sizeof(ProcessId) == 24);

class IBCOLL_MODULE_API ProcessWatch {
 public:
  // kEnding: a process counts as ended as soon as the kernel has begun to end it.
  enum class Until { kEnded, kEnding };
  explicit ProcessWatch(Until until) : own_(ProcessId::own()), until_(until) {}
  ~ProcessWatch();
  ProcessWatch(const ProcessWatch&) = delete;
  ProcessWatch& operator=(const ProcessWatch&) = delete;

  const ProcessId& own() const { return own_; }
  // From now on ended() looks at the process of this rank, which is on this machine. SYSTEM: there is no way to watch
  // it.
  Status add(int rank, int64_t pid, uint64_t start);
  // The same for a rank that may be elsewhere and whose end its network notices as well, if later: where it cannot be
  // watched, nothing happens.
  void add_if_local(int rank, const ProcessId& id);
  void remove(int rank);
  // Ranks whose processes have ended; each is removed from the watch.
  std::vector<int> ended();
  // The same for one that is watched, at once. False for one that is not watched (any more).
  bool alive(int rank) const;
  // The first of these ranks that is not alive(), or -1: one system call for all of them.
  int first_ended(const std::vector<int>& ranks);
  // "pidfd", or why it is not.
  const std::string& method() const { return method_; }

 private:
  struct Watched {
    int rank;
    int64_t pid;
    uint64_t start;
    bool gone;  // had ended when it was added
  };
  bool ended_by_proc(const Watched& process) const;
  std::vector<Watched>::const_iterator find(int rank) const;
  void remove_at(size_t i);

  const ProcessId own_;
  const Until until_;
  std::vector<pollfd> handles_;   // pidfds; -1: none
  std::vector<Watched> watched_;  // in the same order
  std::vector<pollfd> asked_;     // of first_ended()
  std::string method_ = "pidfd";
  std::chrono::steady_clock::time_point next_check_{};
};

}  // namespace ibcoll
