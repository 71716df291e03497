// SPDX-License-Identifier: BSD-3-Clause
// Peers on the same machine are watched as processes: UCX's own check of shared memory peers misses some deaths (those of
// peers that only ever sent), and this one is quicker over TCP as well.
#pragma once

#include <poll.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ibcoll::ucx {

struct Peer;

// Tells a process apart from all others that ever ran under this kernel. Travels with the address.
struct ProcessId {
  uint64_t machine = 0;  // kernel and PID namespace; 0: not known
  int64_t pid = 0;
  uint64_t start = 0;  // when it started, so that a reused PID is not taken for it

  static ProcessId own();
};
static_assert(sizeof(ProcessId) == 24);

class ProcessWatch {
 public:
  ProcessWatch() : own_(ProcessId::own()) {}
  ~ProcessWatch();
  ProcessWatch(const ProcessWatch&) = delete;
  ProcessWatch& operator=(const ProcessWatch&) = delete;

  const ProcessId& own() const { return own_; }
  // From now on ended() looks at the process of this peer. Nothing happens for processes of other machines.
  void add(Peer& peer, const ProcessId& id);
  void remove(const Peer& peer);
  // Peers whose processes have ended; each is removed from the watch.
  std::vector<Peer*> ended();

 private:
  void remove_at(size_t i);

  const ProcessId own_;
  std::vector<pollfd> handles_;  // pidfds; -1: had ended when it was added
  std::vector<Peer*> peers_;     // in the same order
};

}  // namespace ibcoll::ucx
