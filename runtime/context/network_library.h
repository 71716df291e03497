// SPDX-License-Identifier: BSD-3-Clause
// Loads the module of a transport between nodes.
#pragma once

#include <memory>

#include "runtime/base/json.h"
#include "runtime/base/network_modules.h"
#include "runtime/transport/network_transport.h"

namespace ibcoll {

// UNSUPPORTED: the module cannot be loaded, or finds no device that it can use; else what the module answers.
Result<std::unique_ptr<NetworkTransport>> open_network(const NetworkModule& module, const NetworkParams& params);

// The devices that the module finds on this machine (ListDevices); {"reason": ...} where it cannot be loaded.
Json network_devices(const NetworkModule& module, const Config& config);

}  // namespace ibcoll
