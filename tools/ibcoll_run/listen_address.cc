// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_run/listen_address.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>

#include "runtime/base/unique_fd.h"
#include "tools/ibcoll_run/before_start.h"

namespace ibcoll::run {
namespace {

// Asks the kernel for the route; nothing is sent.
std::optional<SocketAddress> source_towards(const SocketAddress& target) {
  const UniqueFd socket(::socket(target.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket || ::connect(socket.get(), target.get(), target.length) != 0) return std::nullopt;
  SocketAddress source;
  source.length = sizeof(source.storage);
  if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&source.storage), &source.length) != 0) {
    return std::nullopt;
  }
  source.set_port(0);
  return source;
}

// `trouble`: a name server that did not answer, or a name that means the host itself on every host.
std::optional<SocketAddress> source_towards(const std::string& host, Status& trouble) {
  // A name server that does not answer costs seconds: only the first name is tried then.
  static bool is_answered = true;
  if (!is_answered) return std::nullopt;
  const Result<std::vector<SocketAddress>> targets = look_up(host);
  is_answered = targets.status().code() != IBCOLL_ERR_TIMEOUT;
  if (!is_answered) trouble = targets.status();
  if (!targets.ok()) return std::nullopt;
  const bool is_name = !numeric_address(host, 0).ok();
  for (const SocketAddress& target : targets.value()) {
    if (is_name && target.is_loopback()) {
      trouble = error(IBCOLL_ERR_SYSTEM, "host {} resolves to {} here, where every host finds itself (see /etc/hosts)",
                      host, target.host_text());
    } else if (std::optional<SocketAddress> source = source_towards(target)) {
      trouble = {};
      return source;
    }
  }
  return std::nullopt;
}

// Lower is better; negative: not usable.
int preference(const ifaddrs& entry, const SocketAddress& address) {
  if ((entry.ifa_flags & IFF_UP) == 0) return -1;
  if (address.is_loopback()) return 3;
  if (address.is_link_local()) return -1;
  return address.is_private() ? (address.family() == AF_INET ? 0 : 1) : 2;
}

std::optional<SocketAddress> best_interface_address() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return std::nullopt;
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, &::freeifaddrs);
  std::optional<SocketAddress> best;
  int best_preference = 4;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr) continue;
    const int family = entry->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    SocketAddress address;
    address.length = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    std::memcpy(&address.storage, entry->ifa_addr, address.length);
    const int value = preference(*entry, address);
    if (value >= 0 && value < best_preference) {
      best_preference = value;
      best = address;
    }
  }
  return best;
}

Result<SocketAddress> checked(const SocketAddress& address, bool allow_public, const std::string& whose) {
  if (address.is_private() || allow_public) return address;
  return error(
      IBCOLL_ERR_INVALID_ARGUMENT,
      "{} is {}, which is not a private address: the rendezvous does not listen there unless --allow-public or "
      "IBCOLL_ALLOW_PUBLIC=yes says so; --address names another",
      whose, address.host_text());
}

}  // namespace

Result<SocketAddress> listen_address_for(const std::string& host, bool allow_public) {
  const std::string name = host.substr(host.rfind('@') + 1);  // npos + 1 is 0
  Status trouble;
  std::optional<SocketAddress> address = source_towards(name, trouble);
  if (!address) address = best_interface_address();
  if (address && !trouble.ok()) {
    std::fprintf(stderr,
                 "ibcoll_run: %s; ranks will reach this machine at %s, unless --address names another address\n",
                 trouble.text().c_str(), address->host_text().c_str());
  }
  if (!address) {
    return error(IBCOLL_ERR_SYSTEM, "host {}: which address of this machine does it reach? Say it by --address", host);
  }
  return checked(*address, allow_public, fmt::format("this machine's address on the way to host {}", host));
}

Result<SocketAddress> loopback_address() {
  Result<SocketAddress> newer = numeric_address("::1", 0), older = numeric_address("127.0.0.1", 0);
  const auto reachable = [](const SocketAddress& address) { return source_towards(address).has_value(); };
  return newer.ok() && older.ok() && !reachable(*older) && reachable(*newer) ? newer : older;
}

Result<SocketAddress> given_listen_address(const std::string& address, bool allow_public) {
  const Result<SocketAddress> parsed = numeric_address(address, 0);
  if (!parsed.ok()) return error(IBCOLL_ERR_INVALID_ARGUMENT, "--address {}", parsed.status().text());
  if (parsed.value().is_no_host())
    return error(IBCOLL_ERR_INVALID_ARGUMENT,
                 "--address {}: ranks cannot connect there; name an address of this machine", address);
  return checked(parsed.value(), allow_public, "--address");
}

}  // namespace ibcoll::run
