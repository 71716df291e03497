// SPDX-License-Identifier: BSD-3-Clause
// The ranks of a job, and their exchange of a few hundred bytes each before any transport works.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "bootstrap/arbiter.h"
#include "runtime/base/status.h"

namespace ibcoll {

class Bootstrap {
 public:
  virtual ~Bootstrap() = default;
  // "ibcoll_run", "pmi", "pmix", "callbacks" or "single"; shown by ibcoll_info.
  virtual std::string name() const = 0;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  // The node of this rank: ranks with the same text share memory. Empty: the identity of the host decides
  // (machine/topology.cc). Under ibcoll_run --nodes K it is "emulated-0" and so on.
  virtual std::string node() const { return {}; }
  // True when all ranks of the job run on this machine, so that loopback is enough. Known before any exchange.
  virtual bool local_job() const { return false; }
  // Gathers `mine` (the same length on all ranks) from every rank into `all` (size x length, rank order). Collective
  // and blocking, with a deadline; TIMEOUT and BOOTSTRAP errors name the ranks that are missing where that is known.
  virtual Status allgather(std::span<const std::byte> mine, std::span<std::byte> all) = 0;
  // A rank whose process has ended: "its process (pid 7 on host a) was killed by signal 9 (Killed)".
  struct Ended {
    int rank = 0;
    std::string how;
  };
  // The ended ranks that the launcher has reported since the last call. At most one system call if there is none; never
  // blocks. Empty where the launcher does not report ends.
  virtual std::vector<Ended> ended() { return {}; }
  // By which living ranks agree; belongs to this object. nullptr where the launcher offers none.
  virtual Arbiter* arbiter() { return nullptr; }
};

// Ranks among which the host program gathers.
struct HostGroup {
  int (*allgather)(void* user, const void* send, void* recv, size_t bytes);
  void* user;
};
// Bootstrap::allgather() among them. BOOTSTRAP: the callback fails or throws.
Status gather_by_host(const HostGroup& group, std::span<const std::byte> mine, std::span<std::byte> all);

// `callbacks` where given; else what started this process: ibcoll_run (environment, see tcp.h), PMI-1, PMIx (module
// libibcoll_pmix.so), or none of them: then it is a job of one rank. BOOTSTRAP where a launcher says that there are
// more ranks, and offers no way to them. With IBCOLL_SINGLETON=yes the launcher is not asked.
Result<std::unique_ptr<Bootstrap>> make_bootstrap(const ibcoll_bootstrap_t* callbacks);

}  // namespace ibcoll
