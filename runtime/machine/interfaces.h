// SPDX-License-Identifier: BSD-3-Clause
// The network interfaces of this machine, as UCX takes them: each with one address.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/status.h"

namespace ibcoll {

// An IPv6 address, or an IPv4 one as ::ffff:a.b.c.d.
using IpAddress = std::array<uint8_t, 16>;

struct Interface {
  std::string name;
  bool up = false;  // and running: has a carrier
  bool loopback = false;
  sockaddr_storage address{};  // the first one of the preferred family (UCX_TCP_AF_PRIO); ss_family 0: none
  unsigned index = 0;          // the kernel's
};

// Each interface once. SYSTEM: the kernel does not list them.
IBCOLL_MODULE_API Result<std::vector<Interface>> list_interfaces();

// Up, not loopback, and with an address that routers and other interfaces know, unlike a link-local one.
IBCOLL_MODULE_API bool may_join_hosts(const Interface& interface);

IBCOLL_MODULE_API IpAddress ip_of(const sockaddr_storage& address);
IBCOLL_MODULE_API std::string address_text(const sockaddr_storage& address);
// As private_address.h says; false where there is no address.
IBCOLL_MODULE_API bool is_private(const sockaddr_storage& address);
IBCOLL_MODULE_API bool is_link_local(const sockaddr_storage& address);

}  // namespace ibcoll
