// SPDX-License-Identifier: BSD-3-Clause
// Four faults of UCX that only its system calls show. The workarounds replace entries in the table by which libucs
// calls the C library; the code of neither is changed. Other users of UCX in the process call by the same table, so in
// host mode nothing is replaced. versions.h says for which versions each of these is active:
//
// - kFailedSend (before 1.16): send() to a peer that has died fails in the middle of UCX's own queues when the
//   connection has just been made, and UCX ends the process by an assertion. It is answered "try again" instead, and
//   finds the end of the connection as it reads.
// - kFailedConnect (before 1.16): a connect() that fails while UCX is about to answer the peer's first message there
//   ends the process by an assertion, and so does closing that connection. UCX is answered that connect() has succeeded
//   and waits for the peer; ibcoll reports the peer as failed (socket_watch.h).
// - kInheritedSockets (all versions): UCX's sockets stay open in programs that the process starts, which hides its
//   death from its peers. Nor do they take the descriptors 0 to 2 of a program that has closed these.
// - kStrangers (all versions): UCX accepts any connection. Ranks connect from ports that they hold (socket_watch.h).
#pragma once

#include "runtime/base/status.h"

namespace ibcoll::ucx {

// Once UCX is loaded. UNSUPPORTED: the table is not where it should be; UCX is used all the same.
Status replace_system_calls();
// All calls that this version needs it for are replaced, connect() among them.
bool connects_are_seen();

}  // namespace ibcoll::ucx
