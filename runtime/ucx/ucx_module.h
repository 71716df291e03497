// SPDX-License-Identifier: BSD-3-Clause
// What a context sees of libibcoll_ucx.so: no UCX header is needed to include this file. The module is loaded by
// dlopen, and `ibcoll_ucx_open` found by dlsym, so that libibcoll.so runs on machines without UCX.
//
//   open on every rank -> exchange address() through the bootstrap -> set_addresses() -> traffic
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/config.h"
#include "runtime/transport.h"

namespace ibcoll {

struct UcxParams {
  int rank = 0;
  int size = 1;
  const Config* config = nullptr;  // read during the call only
  bool local_job = false;          // all ranks run on this machine: loopback is enough
  uint64_t job = 0;                // the same on all ranks; messages of another job are dropped
};

class UcxModule : public Transport {
 public:
  // Where this rank can be reached: some 50 to 300 bytes, not the same length on all ranks. Valid after opening.
  virtual std::vector<std::byte> address() const = 0;
  // The addresses of all ranks, this one's included. Connects to nobody; INVALID_ARGUMENT when the number is not the
  // job's size or one is too short. Traffic before it is not accepted.
  virtual Status set_addresses(std::vector<std::vector<std::byte>> by_rank) = 0;
};

}  // namespace ibcoll

// The caller owns the result (delete). NULL: *status says why: CONFIG for devices that may not be used, SYSTEM for what
// UCX answers.
extern "C" IBCOLL_MODULE_API ibcoll::UcxModule* ibcoll_ucx_open(const ibcoll::UcxParams& params,
                                                                ibcoll::Status* status);
using ibcoll_ucx_open_t = ibcoll::UcxModule* (*)(const ibcoll::UcxParams&, ibcoll::Status*);
