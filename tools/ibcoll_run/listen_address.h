// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include "bootstrap/socket_address.h"

namespace ibcoll::run {

// The address of this machine that `host` reaches: the source address of the route there; when the name means nothing
// here (an alias of the remote shell) or resolves to loopback, the first private address of an interface. Port 0.
// INVALID_ARGUMENT when that is a public address and `allow_public` is not set.
Result<SocketAddress> listen_address_for(const std::string& host, bool allow_public);
// The address at which ranks of this machine reach it: 127.0.0.1, or ::1 where only that has a route. Port 0.
Result<SocketAddress> loopback_address();
// The address that the user gave; same check.
Result<SocketAddress> given_listen_address(const std::string& address, bool allow_public);

}  // namespace ibcoll::run
