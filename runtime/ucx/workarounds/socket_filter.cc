// SPDX-License-Identifier: BSD-3-Clause
// The ranks exchange where each rank listens and from where it connects, and the kernel filters connections by it
// (versions.h: kStrangers; every known version of UCX).
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "runtime/base/log.h"
#include "runtime/ucx/workarounds/socket_watch.h"
#include "runtime/ucx/workarounds/system_calls.h"

namespace ibcoll::ucx {
namespace {

constexpr size_t kMostPorts = 15, kMostHosts = 15;  // of a rank, in what it sends to others
constexpr size_t kAddressesHeader = 4;

}  // namespace

std::vector<uint64_t> SocketWatch::listening() {
  std::vector<uint64_t> identities;
  for_each_tcp_socket([&](int socket) {
    if (listens(socket)) identities.push_back(identity_of(socket));
  });
  return identities;
}

void SocketWatch::find_listeners(const std::vector<uint64_t>& before, std::span<const std::byte> ucx_address) {
  for_each_tcp_socket([&](int socket) {
    if (!listens(socket) || std::find(before.begin(), before.end(), identity_of(socket)) != before.end()) return;
    const std::optional<TcpAddress> address = local_address(socket);
    if (!address) return;
    const std::byte port[2] = {std::byte(address->port >> 8), std::byte(address->port & 0xff)};
    if (std::search(ucx_address.begin(), ucx_address.end(), port, port + 2) == ucx_address.end()) return;
    listeners_[socket] = identity_of(socket);
    (void)admit_only(socket, {});
    ::fcntl(socket, F_SETFD, FD_CLOEXEC);
    own_.ports.push_back(address->port);
    if (is_loopback(address->host)) own_.hosts.push_back(address->host);
  });
  shut_early_connections();
  if (connects_are_seen() && !own_.ports.empty()) reserve_source();
  const std::vector<Host> hosts = own_hosts();
  own_.hosts.insert(own_.hosts.end(), hosts.begin(), hosts.end());
  if (own_.ports.size() > kMostPorts || own_.hosts.size() > kMostHosts) own_ = {};
}

// Two counts of a byte each, the port of connections, the ports to listen, the hosts.
std::vector<std::byte> SocketWatch::own_addresses() const {
  const auto ports = std::as_bytes(std::span(own_.ports)), hosts = std::as_bytes(std::span(own_.hosts));
  std::vector<std::byte> bytes(kAddressesHeader + ports.size() + hosts.size());
  bytes[0] = std::byte(own_.ports.size());
  bytes[1] = std::byte(own_.hosts.size());
  std::memcpy(&bytes[2], &own_.source, sizeof own_.source);
  std::copy(ports.begin(), ports.end(), bytes.begin() + kAddressesHeader);
  std::copy(hosts.begin(), hosts.end(), bytes.end() - static_cast<std::ptrdiff_t>(hosts.size()));
  return bytes;
}

size_t SocketWatch::bytes_of(std::span<const std::byte> serialized) {
  if (serialized.size() < kAddressesHeader) return 0;
  const size_t ports = std::to_integer<size_t>(serialized[0]), hosts = std::to_integer<size_t>(serialized[1]);
  const size_t bytes = kAddressesHeader + ports * sizeof(uint16_t) + hosts * sizeof(Host);
  return ports <= kMostPorts && hosts <= kMostHosts && bytes <= serialized.size() ? bytes : 0;
}

void SocketWatch::set_addresses_of(int rank, std::span<const std::byte> serialized) {
  Addresses addresses;
  addresses.ports.resize(std::to_integer<size_t>(serialized[0]));
  addresses.hosts.resize(std::to_integer<size_t>(serialized[1]));
  const size_t port_bytes = addresses.ports.size() * sizeof(uint16_t);
  std::memcpy(&addresses.source, serialized.data() + 2, sizeof addresses.source);
  serialized = serialized.subspan(kAddressesHeader);
  if (!addresses.ports.empty()) std::memcpy(addresses.ports.data(), serialized.data(), port_bytes);
  if (!addresses.hosts.empty())
    std::memcpy(addresses.hosts.data(), serialized.data() + port_bytes, addresses.hosts.size() * sizeof(Host));
  for (const Host& host : addresses.hosts) {
    for (const uint16_t port : addresses.ports) ranks_[{host, port}] = rank;
    if (addresses.source != 0) ranks_[{host, addresses.source}] = rank;
  }
  if (by_rank_.size() <= static_cast<size_t>(rank)) by_rank_.resize(static_cast<size_t>(rank) + 1);
  by_rank_[static_cast<size_t>(rank)] = std::move(addresses);
}

// Before any rank connects: such connections were made before the filter was set.
void SocketWatch::shut_early_connections() const {
  for_each_tcp_socket([&](int socket) {
    const std::optional<TcpAddress> local = local_address(socket);
    if (local && is_listener(local->port) && !listens(socket)) ::shutdown(socket, SHUT_RDWR);
  });
}

void SocketWatch::admit_ranks() {
  shut_early_connections();  // connections that UCX has accepted since
  std::map<Host, std::vector<uint16_t>> sources;
  bool all_bound = true, all_listed = true;
  for (const Addresses& of_rank : by_rank_) {
    all_listed = all_listed && !of_rank.hosts.empty();  // else it has too many to list
    all_bound = all_bound && of_rank.source != 0;
    for (const Host& host : of_rank.hosts) sources[host].push_back(of_rank.source);
  }
  const auto admit = [&](const auto& whom) {
    return std::all_of(listeners_.begin(), listeners_.end(), [&](const auto& it) { return whom(it.first); });
  };
  const auto admit_sources = [&](int listener) { return admit_only(listener, sources); };
  if (listeners_.empty()) return;
  if (all_listed && all_bound && admit(admit_sources)) {
    admitted_text_ = "ranks of this job only";
  } else {  // a filter has its limits
    for (auto& [host, ports] : sources) ports.clear();
    if (all_listed && admit(admit_sources))
      admitted_text_ = "hosts of this job only";
    else
      admit(admit_all);
  }
  log(LogLevel::kInfo, "ucx: {} ports are open to {}", listeners_.size(), admitted_text_);
}

bool SocketWatch::is_listener(uint16_t port) const {
  return std::find(own_.ports.begin(), own_.ports.end(), port) != own_.ports.end();
}

// A port that no other socket on this machine gets as long as it is held, except for sockets of this user that ask to
// share it.
void SocketWatch::reserve_source() {
  for (const int family : {AF_INET6, AF_INET}) {
    UniqueFd socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int on = 1;
    sockaddr_storage any{};
    any.ss_family = static_cast<sa_family_t>(family);
    const socklen_t length = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    if (socket.get() < 0 || ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) != 0 ||
        ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&any), length) != 0)
      continue;
    const std::optional<TcpAddress> address = local_address(socket.get());
    if (!address) continue;
    own_.source = address->port;
    reservation_ = std::move(socket);
    return;
  }
}

// Sockets of one user share a port by SO_REUSEPORT. If the program has changed its user since the others were made,
// only SO_REUSEADDR permits that, set on all of them. With it any user's socket that has it too could share the port,
// so it is removed again.
bool SocketWatch::share_source(int descriptor, const sockaddr* source, socklen_t length) const {
  const int on = 1;
  if (::setsockopt(descriptor, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) != 0) return false;
  if (::bind(descriptor, source, length) == 0) return true;
  if (errno != EADDRINUSE) return false;
  std::vector<int> sharing = {reservation_.get(), descriptor};
  for (const auto& [other, state] : sockets_) {
    const std::optional<TcpAddress> local = local_address(other);
    if (local && local->port == own_.source) sharing.push_back(other);
  }
  const auto let_all_in = [&](int whether) {
    for (const int one : sharing) ::setsockopt(one, SOL_SOCKET, SO_REUSEADDR, &whether, sizeof whether);
  };
  let_all_in(1);
  const int outcome = ::bind(descriptor, source, length), reason = errno;
  let_all_in(0);
  errno = reason;
  return outcome == 0;
}

void SocketWatch::bind_source(int descriptor, const TcpAddress& to) {
  const std::lock_guard lock(mutex_);
  const auto found = ranks_.find(to);
  if (found == ranks_.end()) return;
  sockets_[descriptor] = {identity_of(descriptor), found->second, to.host, now(), 0};
  if (own_.source == 0) return;
  sockaddr_storage any{};
  any.ss_family = is_ipv4(to.host) ? AF_INET : AF_INET6;
  (is_ipv4(to.host) ? reinterpret_cast<sockaddr_in&>(any).sin_port : reinterpret_cast<sockaddr_in6&>(any).sin6_port) =
      htons(own_.source);
  const socklen_t length = is_ipv4(to.host) ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  if (!share_source(descriptor, reinterpret_cast<const sockaddr*>(&any), length))
    log(LogLevel::kInfo, "ucx: a socket was not bound to port {}: {}", own_.source, std::strerror(errno));
}

}  // namespace ibcoll::ucx
