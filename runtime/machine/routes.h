// SPDX-License-Identifier: BSD-3-Clause
// Asks the kernel's routing tables about an address. Nothing is sent to it.
#pragma once

#include <cstdint>

#include "runtime/base/status.h"
#include "runtime/base/unique_fd.h"
#include "runtime/machine/interfaces.h"

namespace ibcoll {

// How this host reaches an address, worst first.
enum class Way : uint8_t {
  kNone,    // there is no route
  kOwn,     // the address is this host's own
  kRouted,  // through a gateway, or the kernel does not say how
  kDirect,  // it is on a network that an interface of this host is on
};

struct Route {
  Way way = Way::kNone;
  unsigned interface = 0;  // index of the one that packets leave by; 0: not known
};

class Routes {
 public:
  // Where the kernel gives no socket for it, every way is kRouted.
  static Routes open();
  Route to(const IpAddress& address) const;

 private:
  explicit Routes(UniqueFd socket) : socket_(std::move(socket)) {}
  UniqueFd socket_;
};

}  // namespace ibcoll
