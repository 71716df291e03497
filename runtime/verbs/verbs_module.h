// SPDX-License-Identifier: BSD-3-Clause
// What a context sees of libibcoll_verbs.so: no verbs header is needed to include this file. The module is loaded by dlopen,
// and `ibcoll_verbs_open` found by dlsym, so that libibcoll.so runs on machines without rdma-core.
//
//   open on every rank -> exchange address() through the bootstrap -> set_addresses() -> traffic
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "runtime/config.h"
#include "runtime/transport.h"

namespace ibcoll {

struct VerbsParams {
  int rank = 0;
  int size = 1;
  const Config* config = nullptr;  // read during the call only
  uint64_t job = 0;                // the same on all ranks; greetings of another job are dropped
};

class VerbsModule : public Transport {
 public:
  // Where this rank can be reached; the same length on all ranks.
  virtual std::vector<std::byte> address() const = 0;
  // The addresses of all ranks, this one's included. Connects to nobody. INVALID_ARGUMENT when their number or length is
  // wrong; CONFIG when two ranks cannot reach each other (one has a LID, the other a GID).
  virtual Status set_addresses(std::vector<std::vector<std::byte>> by_rank) = 0;
};

}  // namespace ibcoll

// The caller owns the result (delete). NULL: *status says why: UNSUPPORTED without a device that can be used, CONFIG for one
// that is not there, SYSTEM and NO_MEMORY for what verbs answers.
extern "C" IBCOLL_MODULE_API ibcoll::VerbsModule* ibcoll_verbs_open(const ibcoll::VerbsParams& params,
                                                                    ibcoll::Status* status);
using ibcoll_verbs_open_t = ibcoll::VerbsModule* (*)(const ibcoll::VerbsParams&, ibcoll::Status*);

// The RDMA ports of this machine, each with its state, GIDs and limits, and which one would be used, or why none.
extern "C" IBCOLL_MODULE_API void ibcoll_verbs_devices(const ibcoll::Config& config, nlohmann::json* devices);
using ibcoll_verbs_devices_t = void (*)(const ibcoll::Config&, nlohmann::json*);
