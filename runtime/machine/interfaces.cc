// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/machine/interfaces.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "runtime/machine/private_address.h"

namespace ibcoll {
namespace {

// Position of a family in UCX's order of preference (UCX_TCP_AF_PRIO, "inet,inet6"); -1: not wanted.
int preference(int family) {
  const char* wish = std::getenv("UCX_TCP_AF_PRIO");
  const std::string order = wish != nullptr && *wish != '\0' ? wish : "inet,inet6";
  size_t begin = 0;
  for (int position = 0; begin <= order.size(); ++position) {
    const size_t end = std::min(order.find(',', begin), order.size());
    const std::string name = order.substr(begin, end - begin);
    if ((name == "inet" && family == AF_INET) || (name == "inet6" && family == AF_INET6)) return position;
    begin = end + 1;
  }
  return -1;
}

void consider(Interface& interface, const ifaddrs& entry) {
  if (entry.ifa_addr == nullptr) return;
  const int family = entry.ifa_addr->sa_family;
  const int wanted = preference(family);
  if (wanted < 0) return;
  const int present = interface.address.ss_family;
  if (present != 0 && preference(present) <= wanted) return;
  interface.address = {};
  std::memcpy(&interface.address, entry.ifa_addr, family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
}

in6_addr in6_of(const sockaddr_storage& address) { return std::bit_cast<in6_addr>(ip_of(address)); }

}  // namespace

IpAddress ip_of(const sockaddr_storage& address) {
  IpAddress ip{};
  if (address.ss_family == AF_INET6) {
    std::memcpy(ip.data(), &reinterpret_cast<const sockaddr_in6&>(address).sin6_addr, ip.size());
  } else if (address.ss_family == AF_INET) {
    ip[10] = ip[11] = 0xff;
    std::memcpy(ip.data() + 12, &reinterpret_cast<const sockaddr_in&>(address).sin_addr, 4);
  }
  return ip;
}

bool is_private(const sockaddr_storage& address) { return address.ss_family != 0 && is_private(in6_of(address)); }

bool is_link_local(const sockaddr_storage& address) { return address.ss_family != 0 && is_link_local(in6_of(address)); }

bool may_join_hosts(const Interface& interface) {
  return interface.up && !interface.loopback && interface.address.ss_family != 0 && !is_link_local(interface.address);
}

std::string address_text(const sockaddr_storage& address) {
  char text[INET6_ADDRSTRLEN] = "";
  const void* ip = address.ss_family == AF_INET6
                       ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr)
                       : &reinterpret_cast<const sockaddr_in&>(address).sin_addr;
  if (address.ss_family == 0 || inet_ntop(address.ss_family, ip, text, sizeof(text)) == nullptr) return "no address";
  return text;
}

Result<std::vector<Interface>> list_interfaces() {
  ifaddrs* raw = nullptr;
  if (::getifaddrs(&raw) != 0) {
    return error(IBCOLL_ERR_SYSTEM, "getifaddrs: {}; set UCX_NET_DEVICES to name the interfaces", std::strerror(errno));
  }
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> entries(raw, &::freeifaddrs);
  std::vector<Interface> interfaces;
  for (const ifaddrs* entry = raw; entry != nullptr; entry = entry->ifa_next) {
    auto found = std::find_if(interfaces.begin(), interfaces.end(),
                              [&](const Interface& known) { return known.name == entry->ifa_name; });
    if (found == interfaces.end()) {
      Interface fresh;
      fresh.name = entry->ifa_name;
      fresh.index = ::if_nametoindex(entry->ifa_name);
      fresh.up = (entry->ifa_flags & IFF_UP) != 0 && (entry->ifa_flags & IFF_RUNNING) != 0;
      fresh.loopback = (entry->ifa_flags & IFF_LOOPBACK) != 0;
      found = interfaces.insert(interfaces.end(), std::move(fresh));
    }
    consider(*found, *entry);
  }
  return interfaces;
}

}  // namespace ibcoll
