// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/context/network_library.h"

#include <fmt/format.h>

#include <string_view>

#include "runtime/machine/module.h"
#include "runtime/ucx/workarounds/kept_signals.h"
#include "runtime/ucx/workarounds/memory_hooks.h"

namespace ibcoll {
namespace {

Result<void*> function_of(const NetworkModule& module, const char* what) {
  if (std::string_view(module.name) == "ucx") ucx::start_ucm_without_hooks();
  const ucx::KeptSignals kept;  // the module may load UCX
  return module_function(fmt::format("libibcoll_{}.so", module.name).c_str(),
                         fmt::format("ibcoll_{}_{}", module.name, what).c_str());
}

}  // namespace

Result<std::unique_ptr<NetworkTransport>> open_network(const NetworkModule& module, const NetworkParams& params) {
  const Result<void*> open = function_of(module, "open");
  if (!open.ok()) return open.status();
  Status status;
  std::unique_ptr<NetworkTransport> opened(reinterpret_cast<OpenNetwork>(open.value())(params, &status));
  if (!opened) return status;
  return opened;
}

Json network_devices(const NetworkModule& module, const Config& config) {
  const Result<void*> list = function_of(module, "devices");
  if (!list.ok()) return {{"reason", list.status().text()}};
  Json devices;
  reinterpret_cast<ListDevices>(list.value())(config, &devices);
  return devices;
}

}  // namespace ibcoll
