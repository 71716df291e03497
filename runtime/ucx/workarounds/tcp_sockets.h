// SPDX-License-Identifier: BSD-3-Clause
// The TCP sockets of this process. No version of UCX has a function that lists its own; they are found among the
// descriptors.
#pragma once

#include <sys/socket.h>

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace ibcoll::ucx {

// An IPv6 address, or an IPv4 one as ::ffff:a.b.c.d.
using Host = std::array<uint8_t, 16>;

struct TcpAddress {
  Host host{};
  uint16_t port = 0;
  friend auto operator<=>(const TcpAddress&, const TcpAddress&) = default;
};

// False: there is no /proc/self/fd.
bool for_each_tcp_socket(const std::function<void(int)>& visit);
bool is_tcp(int descriptor);
bool listens(int socket);
std::optional<TcpAddress> address_of(const sockaddr* address);
std::optional<TcpAddress> local_address(int socket);
std::optional<TcpAddress> peer_address(int socket);
// Differs for every socket, although descriptors are used again. 0: it was closed.
uint64_t identity_of(int socket);

bool is_ipv4(const Host& host);
bool is_loopback(const Host& host);
std::string text_of(const Host& host);
// The addresses of this machine's devices, without loopback.
std::vector<Host> own_hosts();

// Lets no other socket begin a connection to a listening one: the kernel drops what does not come from these ports of
// these hosts; no port: any. False: the kernel refuses, or these are too many.
bool admit_only(int listener, const std::map<Host, std::vector<uint16_t>>& sources);
// No filter any more, where there was one.
bool admit_all(int socket);

}  // namespace ibcoll::ucx
