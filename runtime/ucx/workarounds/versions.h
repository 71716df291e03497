// SPDX-License-Identifier: BSD-3-Clause
// The faults of UCX that this folder works around, and the versions of UCX that have them. A workaround is active only
// with these.
//
// All were seen in UCX 1.13.1 (Debian 12), with which ibcoll is tested. Older versions are taken to have them as well.
// Where no version is known to be without the fault, all later ones are taken to have it.
#pragma once

#include <compare>

#include "runtime/base/status.h"

namespace ibcoll::ucx {

struct Version {
  unsigned major = 0;
  unsigned minor = 0;
  friend auto operator<=>(const Version&, const Version&) = default;
};

enum class Fault {
  kFailedSend,        // send() to a peer that has died ends the process (system_calls.h)
  kFailedConnect,     // a connect() that fails ends the process (system_calls.h, socket_watch.h)
  kInheritedSockets,  // programs that the process starts keep sockets open (system_calls.h, socket_watch.h)
  kStrangers,         // anybody may connect (system_calls.h, socket_watch.h)
  kMremap,            // mremap() loses an argument (memory_hooks.h)
  kSignals,           // loading UCX changes the handlers of signals (kept_signals.h)
};

// The first version without the fault.
constexpr Version fixed_in(Fault fault) {
  constexpr Version kNone{~0U, ~0U};
  switch (fault) {
    case Fault::kFailedSend:  // from here on UCX's newer protocols send, which queue what failed
    case Fault::kFailedConnect:
      return {1, 16};
    case Fault::kMremap:  // UCX's release notes: "Fixed mremap() override"
      return {1, 15};
    case Fault::kInheritedSockets:
    case Fault::kStrangers:
    case Fault::kSignals:
      return kNone;
  }
  return kNone;
}

constexpr bool has_fault(Version version, Fault fault) { return version < fixed_in(fault); }

// UCX's version here. Loads libucp if only other libraries of UCX are loaded. {0, 0}, which has all faults: no UCX.
IBCOLL_MODULE_API Version running_version();
inline bool is_needed(Fault fault) { return has_fault(running_version(), fault); }

}  // namespace ibcoll::ucx
