// SPDX-License-Identifier: BSD-3-Clause
// The way into libibcoll_ucx.so.
#pragma once

#include "runtime/network_transport.h"

// An OpenNetwork. CONFIG: devices that may not be used; SYSTEM: what UCX answers.
extern "C" IBCOLL_MODULE_API ibcoll::NetworkTransport* ibcoll_ucx_open(const ibcoll::NetworkParams& params,
                                                                       ibcoll::Status* status);
