// SPDX-License-Identifier: BSD-3-Clause
// Four faults of UCX that only its calls of the system show, mended there: in the table by which libucs calls the C
// library. The code of neither is touched; but other users of UCX in the process call by the same table, so in host
// mode nothing is mended.
//
// - send() to a peer that has died fails in the middle of UCX's own queues when the connection has just been made, and
//   UCX 1.13 ends the process by an assertion. It is told to try again instead, and finds the end of the connection as
//   it reads. UCX 1.16 sends in another way, and its send() is left alone.
// - A connect() that fails while UCX 1.13 is about to answer the peer's first message there ends the process by an
//   assertion, and so does closing that connection. UCX is told that it has succeeded, and waits for an answer; ibcoll
//   gives the peer up (socket_watch.h). Later versions lack the assertion.
// - UCX's sockets stay open in programs that the process starts, which hides its death from its peers. (Any version.)
// - UCX lets in whom it does not know. Ranks connect from ports that they hold (socket_watch.h). (Any version.)
#pragma once

#include <compare>

#include "runtime/base/status.h"

namespace ibcoll::ucx {

struct UcxVersion {
  unsigned major = 0;
  unsigned minor = 0;
  auto operator<=>(const UcxVersion&) const = default;
};

// Once UCX is loaded. UNSUPPORTED: the table is not where it should be; UCX is used all the same.
Status mend_system_calls(UcxVersion version);
// All calls that this version needs it for are mended, connect() among them.
bool connects_are_seen();

}  // namespace ibcoll::ucx
