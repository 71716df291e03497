// SPDX-License-Identifier: BSD-3-Clause
// Two faults of UCX that only its calls of the system show, mended there: in the table by which libucs calls the C
// library. The code of neither is touched, and nobody else's calls.
//
// - send() to a peer that has died fails in the middle of UCX's own queues when the connection has just been made, and
//   UCX 1.13 ends the process by an assertion. It is told to try again instead, and finds the end of the connection as
//   it reads.
// - UCX's sockets stay open in programs that the process starts, which hides its death from its peers.
// - UCX lets in whom it does not know. Ranks connect from ports that they hold (socket_watch.h).
#pragma once

#include "runtime/base/status.h"

namespace ibcoll::ucx {

// Once UCX is loaded. UNSUPPORTED: the table is not where it should be; UCX is used all the same.
Status mend_system_calls();
// All of them are.
bool connects_are_seen();

}  // namespace ibcoll::ucx
