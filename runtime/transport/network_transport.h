// SPDX-License-Identifier: BSD-3-Clause
// The interface of the modules that reach other nodes (libibcoll_ucx.so, libibcoll_verbs.so): no header of UCX or
// rdma-core is needed to include this file. A module is loaded by dlopen, and its open function found by dlsym, so that
// libibcoll.so runs on machines without these libraries.
//
//   open on every rank -> exchange address() through the bootstrap -> set_addresses() -> traffic
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/base/config.h"
#include "runtime/machine/interfaces.h"
#include "runtime/machine/routes.h"
#include "runtime/transport/transport.h"

namespace ibcoll {

// An address of this host, as all other hosts of the job see it.
struct ReachedAddress {
  IpAddress address{};
  Way way = Way::kNone;   // on the worst of the other hosts
  int worst_rank = -1;    // a rank there; -1: there is no other host
  bool is_source = true;  // this host sends from its interface to some other host
};

struct NetworkParams {
  int rank = 0;
  int size = 1;
  const Config* config = nullptr;  // read during the call only
  bool local_job = false;          // all ranks run on this machine: loopback is enough
  uint64_t job = 0;                // the same on all ranks; what comes from another job is dropped
  int near = 0;                    // how many other ranks share this one's node, and need no network
  bool in_host = false;            // host mode: what belongs to the whole process stays as it is
  const std::vector<ReachedAddress>* reached = nullptr;  // this rank's addresses; nullptr: not known
};

class IBCOLL_MODULE_API NetworkTransport : public Transport {
 public:
  // The address of this rank: some 50 to 300 bytes, not the same length on all ranks. Valid after opening.
  virtual std::vector<std::byte> address() const = 0;
  // The addresses of all ranks, this one's included. Connects to nobody. INVALID_ARGUMENT when their number is not the
  // job's size or one has a wrong length; CONFIG when two ranks cannot reach each other. No traffic before it.
  virtual Status set_addresses(std::vector<std::vector<std::byte>> by_rank) = 0;
};

// The caller owns the result (delete). NULL: *status says why.
using OpenNetwork = NetworkTransport* (*)(const NetworkParams& params, Status* status);
// Lists what a module finds on this machine, also where a job does not use it: devices, which ones would be used, and
// the reason why none.
using ListDevices = void (*)(const Config& config, Json* devices);

}  // namespace ibcoll
