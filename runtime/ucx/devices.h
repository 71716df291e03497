// SPDX-License-Identifier: BSD-3-Clause
// Which UCX transports and network devices a job may use. UCX would listen on every interface; ibcoll opens only
// loopback (jobs on one machine) or interfaces with a private address, unless IBCOLL_ALLOW_PUBLIC=yes.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/config.h"
#include "runtime/base/status.h"

namespace ibcoll::ucx {

struct Interface {
  std::string name;
  bool up = false;  // and running: has a carrier
  bool loopback = false;
  sockaddr_storage address{};  // what UCX would listen on; ss_family 0: none
};

// What UCX and ibcoll find in the environment; empty: not set.
struct UserChoice {
  std::string tls;          // UCX_TLS
  std::string net_devices;  // UCX_NET_DEVICES
  static UserChoice from_environment();
};

struct DevicePlan {
  std::string tls;          // for UCX_TLS
  std::string net_devices;  // for UCX_NET_DEVICES; empty: leave it to UCX (no transport that listens on addresses)
  std::vector<std::string> reasons;  // one line for each device and choice, for ibcoll_info -d
  bool shared_memory = false;        // one of UCX's shared memory transports may be used
  bool rdma = false;                 // one of its InfiniBand transports may be used
  bool tcp = false;                  // tcp may be used
};

// Loopback, RFC 1918, 100.64/10, 169.254/16, fc00::/7, fe80::/10.
bool is_private(const sockaddr_storage& address);
std::string address_text(const sockaddr_storage& address);

// The machine's interfaces, each once, with the address that UCX takes: the first one of the preferred family.
Result<std::vector<Interface>> list_interfaces();
// RDMA devices as UCX names these ("mlx5_0:1"), from /sys/class/infiniband; only active ports.
std::vector<std::string> list_rdma_ports();

// CONFIG: a device is not there or has a public address, or there is none that may be used.
Result<DevicePlan> plan_devices(const Config& config, const UserChoice& user, bool local_job,
                                const std::vector<Interface>& interfaces, const std::vector<std::string>& rdma_ports);

}  // namespace ibcoll::ucx
