// SPDX-License-Identifier: BSD-3-Clause
// Numeric socket addresses as text: "127.0.0.1:4711", "[fd00::1]:4711".
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/base/status.h"

namespace ibcoll {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  int family() const { return storage.ss_family; }
  uint16_t port() const;
  void set_port(uint16_t port);
  // The address without the port, and with it.
  std::string host_text() const;
  std::string text() const;
  // Not routed on the public internet: the ranges that runtime/machine/private_address.h names.
  bool is_private() const;
  bool is_loopback() const;
  // No router passes it on.
  bool is_link_local() const;
  // Unspecified (0.0.0.0, ::) or a group: no host has it.
  bool is_no_host() const;
};

// `host` is numeric: "127.0.0.1", "fd00::1", "fe80::1%eth0". No name is looked up.
Result<SocketAddress> numeric_address(std::string_view host, uint16_t port);
// "127.0.0.1:4711", "[fd00::1]:4711"
Result<SocketAddress> parse_socket_address(std::string_view text);

}  // namespace ibcoll
