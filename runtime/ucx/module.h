// SPDX-License-Identifier: BSD-3-Clause
// The ways into libibcoll_ucx.so.
#pragma once

#include "runtime/base/json.h"
#include "runtime/transport/network_transport.h"

// An OpenNetwork. CONFIG: devices that may not be used; SYSTEM: what UCX answers.
extern "C" IBCOLL_MODULE_API ibcoll::NetworkTransport* ibcoll_ucx_open(const ibcoll::NetworkParams& params,
                                                                       ibcoll::Status* status);

// A ListDevices: the interfaces and ports that a job on several machines would use, and why not the others.
extern "C" IBCOLL_MODULE_API void ibcoll_ucx_devices(const ibcoll::Config& config, ibcoll::Json* devices);
