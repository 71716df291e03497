// SPDX-License-Identifier: BSD-3-Clause
// The ways into libibcoll_verbs.so.
#pragma once

#include "runtime/base/json.h"
#include "runtime/transport/network_transport.h"

// An OpenNetwork. UNSUPPORTED: no device that can be used; CONFIG: the one that is wanted is not there; SYSTEM and
// NO_MEMORY: what verbs answers.
extern "C" IBCOLL_MODULE_API ibcoll::NetworkTransport* ibcoll_verbs_open(const ibcoll::NetworkParams& params,
                                                                         ibcoll::Status* status);

// A ListDevices: the RDMA ports of this machine, each with its state, GIDs and limits.
extern "C" IBCOLL_MODULE_API void ibcoll_verbs_devices(const ibcoll::Config& config, ibcoll::Json* devices);
