// SPDX-License-Identifier: BSD-3-Clause
// Who is there and how to reach them: the exchange of a few hundred bytes per rank before any transport works.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/status.h"

namespace ibcoll {

class Bootstrap {
 public:
  virtual ~Bootstrap() = default;
  // "ibcoll_run", "pmix", "callbacks" or "single"; shown by ibcoll_info.
  virtual std::string name() const = 0;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  // What tells apart the nodes of the job: ranks with the same text share memory. Empty: the host's own identity
  // (boot id and IPC namespaces) decides. ibcoll_run --nodes K answers "emulated-0" ... here.
  virtual std::string node() const { return {}; }
  // True when all ranks of the job run on this machine, so that loopback is enough. Known before any exchange.
  virtual bool local_job() const { return false; }
  // Gathers `mine` (the same length on all ranks) from every rank into `all` (size x length, rank order). Collective
  // and blocking, with a deadline; TIMEOUT and BOOTSTRAP errors name the ranks that are missing where that is known.
  virtual Status allgather(std::span<const std::byte> mine, std::span<std::byte> all) = 0;
};

// The bootstrap that this process was started under: ibcoll_run (environment of runtime/../bootstrap/tcp.h), else PMIx
// (module libibcoll_pmix.so), else one rank alone. `callbacks` wins when given.
Result<std::unique_ptr<Bootstrap>> make_bootstrap(const ibcoll_bootstrap_t* callbacks);

}  // namespace ibcoll
