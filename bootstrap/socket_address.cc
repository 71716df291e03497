// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/socket_address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>

#include <charconv>
#include <cstring>
#include <memory>

#include "runtime/machine/private_address.h"

namespace ibcoll {
namespace {

const sockaddr_in& v4(const SocketAddress& address) { return reinterpret_cast<const sockaddr_in&>(address.storage); }
const sockaddr_in6& v6(const SocketAddress& address) { return reinterpret_cast<const sockaddr_in6&>(address.storage); }

}  // namespace

uint16_t SocketAddress::port() const { return ntohs(family() == AF_INET6 ? v6(*this).sin6_port : v4(*this).sin_port); }

void SocketAddress::set_port(uint16_t port) {
  if (family() == AF_INET6) {
    reinterpret_cast<sockaddr_in6&>(storage).sin6_port = htons(port);
  } else {
    reinterpret_cast<sockaddr_in&>(storage).sin_port = htons(port);
  }
}

std::string SocketAddress::host_text() const {
  char host[NI_MAXHOST] = "?";
  ::getnameinfo(get(), length, host, sizeof(host), nullptr, 0, NI_NUMERICHOST);
  return host;
}

std::string SocketAddress::text() const {
  return family() == AF_INET6 ? fmt::format("[{}]:{}", host_text(), port()) : fmt::format("{}:{}", host_text(), port());
}

bool SocketAddress::is_private() const {
  if (family() == AF_INET) return ibcoll::is_private(v4(*this).sin_addr);
  return family() == AF_INET6 && ibcoll::is_private(v6(*this).sin6_addr);
}

bool SocketAddress::is_no_host() const {
  if (family() == AF_INET) {
    const uint32_t address = ntohl(reinterpret_cast<const sockaddr_in&>(storage).sin_addr.s_addr);
    return address == INADDR_ANY || IN_MULTICAST(address);
  }
  const in6_addr& address = reinterpret_cast<const sockaddr_in6&>(storage).sin6_addr;
  return IN6_IS_ADDR_UNSPECIFIED(&address) || IN6_IS_ADDR_MULTICAST(&address);
}

bool SocketAddress::is_link_local() const {
  if (family() == AF_INET) return ibcoll::is_link_local(v4(*this).sin_addr);
  return family() == AF_INET6 && ibcoll::is_link_local(v6(*this).sin6_addr);
}

bool SocketAddress::is_loopback() const {
  if (family() == AF_INET) return ntohl(v4(*this).sin_addr.s_addr) >> 24 == 127;
  return family() == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&v6(*this).sin6_addr);
}

Result<SocketAddress> numeric_address(std::string_view host, uint16_t port) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int reason = ::getaddrinfo(std::string(host).c_str(), nullptr, &hints, &found);
  if (reason != 0) {
    return error(IBCOLL_ERR_INVALID_ARGUMENT, "'{}' is not a numeric address: {}", host, ::gai_strerror(reason));
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
  SocketAddress address;
  std::memcpy(&address.storage, found->ai_addr, found->ai_addrlen);
  address.length = found->ai_addrlen;
  address.set_port(port);
  return address;
}

Result<SocketAddress> parse_socket_address(std::string_view text) {
  const size_t colon = text.rfind(':');
  uint16_t port = 0;
  if (colon != std::string_view::npos) {
    const char* end = text.data() + text.size();
    const auto [rest, reason] = std::from_chars(text.data() + colon + 1, end, port);
    if (reason != std::errc() || rest != end) port = 0;
  }
  if (port == 0) return error(IBCOLL_ERR_INVALID_ARGUMENT, "'{}' is not of the form ADDRESS:PORT", text);
  std::string_view host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return numeric_address(host, port);
}

}  // namespace ibcoll
