// SPDX-License-Identifier: BSD-3-Clause
// Addresses that are not routed on the public internet. A job listens on others only with IBCOLL_ALLOW_PUBLIC=yes.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>

#include <cstdint>
#include <cstring>

namespace ibcoll {

// Loopback, RFC 1918, 100.64/10, 169.254/16.
inline bool is_private(const in_addr& address) {
  const uint32_t ip = ntohl(address.s_addr);
  return ip >> 24 == 127 || ip >> 24 == 10 || ip >> 20 == 0xac1 ||  // 172.16/12
         ip >> 16 == 0xc0a8 ||                                      // 192.168/16
         ip >> 22 == 0x64400000 >> 22 ||                            // 100.64/10
         ip >> 16 == 0xa9fe;                                        // 169.254/16
}

// Loopback, fc00::/7, fe80::/10, and IPv4-mapped addresses whose IPv4 address is private.
inline bool is_private(const in6_addr& address) {
  if (IN6_IS_ADDR_V4MAPPED(&address)) {
    in_addr mapped{};
    std::memcpy(&mapped, &address.s6_addr[12], sizeof mapped);
    return is_private(mapped);
  }
  return IN6_IS_ADDR_LOOPBACK(&address) || IN6_IS_ADDR_LINKLOCAL(&address) || (address.s6_addr[0] & 0xfe) == 0xfc;
}

// 169.254/16: an interface that found no other address, or a link to the management controller of a server. No router
// passes these on, and a host cannot tell by the address which of its interfaces leads there.
inline bool is_link_local(const in_addr& address) { return ntohl(address.s_addr) >> 16 == 0xa9fe; }

// fe80::/10, and IPv4-mapped addresses whose IPv4 address is link-local.
inline bool is_link_local(const in6_addr& address) {
  if (IN6_IS_ADDR_V4MAPPED(&address)) {
    in_addr mapped{};
    std::memcpy(&mapped, &address.s6_addr[12], sizeof mapped);
    return is_link_local(mapped);
  }
  return IN6_IS_ADDR_LINKLOCAL(&address);
}

}  // namespace ibcoll
