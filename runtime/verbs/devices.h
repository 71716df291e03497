// SPDX-License-Identifier: BSD-3-Clause
// Which port of which device a rank uses, and which of its GIDs.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/config.h"
#include "runtime/base/status.h"

namespace ibcoll::verbs {

using Gid = std::array<uint8_t, 16>;

struct GidEntry {
  enum class Type : uint8_t { kInfiniBand, kRoceV1, kRoceV2 };
  int index = 0;
  Type type = Type::kInfiniBand;
  Gid gid{};
};

struct Port {
  std::string device;  // "mlx5_0"
  int number = 1;
  std::string state;  // "ACTIVE", "DOWN", ...
  bool active = false;
  bool ethernet = false;   // RoCE: addressed by GID
  bool needs_gid = false;  // InfiniBand that wants it as well: virtual functions, routed fabrics
  uint16_t lid = 0;
  ibv_mtu mtu = IBV_MTU_1024;
  double gigabits = 0;  // per second
  std::vector<GidEntry> gids;
  bool near = false;  // to the cores that this process may use
  // of the device
  std::string unfit;          // why ibcoll cannot use it; empty: it can
  bool closed = false;        // it does not answer, which may be temporary
  bool windows = false;       // memory windows of type 2B
  bool good_windows = false;  // and its driver does them right
  bool software = false;      // soft-RoCE: no adapter moves the bytes, but the processes that send and receive
  int most_queue_pairs = 0;
  int most_completions = 0;  // in one completion queue
  int most_regions = 0;
};

struct PortChoice {
  Port port;
  int gid_index = 0;
  Gid gid{};
  bool opens_windows = false;        // exposures are memory windows
  bool global = false;               // packets carry a global route header: the GID addresses
  std::vector<std::string> reasons;  // one line for each port and choice, for ibcoll_info -d
};

// "::ffff:10.0.0.1", "fe80::1".
std::string gid_text(const Gid& gid);
// The address within is an IPv4 one.
bool is_ipv4(const Gid& gid);

// "RoCE v2".
const char* protocol_text(GidEntry::Type type);
// "3 ::ffff:10.0.0.1 (RoCE v2)".
std::string gid_entry_text(const GidEntry& gid);

// Says what a device with this protocol lacks of what ibcoll needs, which is reliable connections and Writes with
// immediate; empty: nothing.
const char* unfitness(ibv_transport_type transport);

// Every port of every device of this machine; a device that cannot be asked is an unfit port. Empty without devices.
std::vector<Port> list_ports();

// IBCOLL_VERBS_DEVICE, then active ports: InfiniBand before Ethernet, so that ranks near different ones still choose
// alike, then the nearest and fastest; IBCOLL_VERBS_GID, then RoCE v2 before v1, IPv4 before IPv6, routable before
// link-local. CONFIG: there is no such device, port or GID, or none of them can be used; the text lists all.
// UNSUPPORTED: no device that ibcoll could use.
Result<PortChoice> choose_port(const Config& config, const std::vector<Port>& ports);

}  // namespace ibcoll::verbs
