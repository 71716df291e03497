// SPDX-License-Identifier: BSD-3-Clause
// Which UCX transports and network devices a job may use. UCX would listen on every interface, and connect any of them
// to any of a peer's. ibcoll opens only loopback (jobs on one machine), or interfaces that all other hosts reach, with
// a private address unless IBCOLL_ALLOW_PUBLIC=yes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/config.h"
#include "runtime/base/status.h"
#include "runtime/machine/interfaces.h"
#include "runtime/transport/network_transport.h"

namespace ibcoll::ucx {

// The settings that UCX and ibcoll find in the environment; empty: not set.
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

// RDMA devices as UCX names these ("mlx5_0:1"), from /sys/class/infiniband; only active ports.
std::vector<std::string> list_rdma_ports();

// `reached`: by the other hosts of the job; nullptr: not known. CONFIG: a device has a public address, or there is none
// that may be used.
Result<DevicePlan> plan_devices(const Config& config, const UserChoice& user, bool local_job,
                                const std::vector<Interface>& interfaces, const std::vector<std::string>& rdma_ports,
                                const std::vector<ReachedAddress>* reached = nullptr);

}  // namespace ibcoll::ucx
