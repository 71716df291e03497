// SPDX-License-Identifier: BSD-3-Clause
// The transports between nodes, a row each, the preferred one first. Each is a module that libibcoll.so loads when a
// job needs it: the folder runtime/NAME, with a library libibcoll_NAME.so that has the functions ibcoll_NAME_open and
// ibcoll_NAME_devices (transport/network_transport.h). A new one needs a row here, and its folder, which
// runtime/CMakeLists.txt and tests/layering/rules.py name. IBCOLL_NET, joining, ibcoll_info -d and ibcoll_run --net read
// this table.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>

namespace ibcoll {

struct NetworkModule {
  // kEarly: every rank tries to open it before it knows the networks of the others. It is used if all could.
  // kWithRoutes: it is opened when the ranks know which addresses of their hosts join these (NetworkParams::reached),
  // if none before it is used. It has to open on all. So of several such rows IBCOLL_NET=auto uses the first one only.
  enum class Opens { kEarly, kWithRoutes };
  const char* name;  // what IBCOLL_NET and Transport::name() call it
  Opens opens;
  const char* packages;  // that it needs at run time, for error texts
  const char* reason;    // kEarly: why it is used, for ibcoll_info -d
};

inline constexpr NetworkModule kNetworkModules[] = {
    {"verbs", NetworkModule::Opens::kEarly, "rdma-core", "every rank has an active RDMA port"},
    {"ucx", NetworkModule::Opens::kWithRoutes, "libucx0", ""},
};

constexpr bool opens_early(const NetworkModule& module) { return module.opens == NetworkModule::Opens::kEarly; }
inline constexpr size_t kEarlyNetworkModules =
    static_cast<size_t>(std::count_if(std::begin(kNetworkModules), std::end(kNetworkModules), opens_early));
static_assert(std::is_partitioned(std::begin(kNetworkModules), std::end(kNetworkModules), opens_early),
              "modules that open early come first");

}  // namespace ibcoll
