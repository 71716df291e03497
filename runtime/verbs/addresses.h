// SPDX-License-Identifier: BSD-3-Clause
// The address that a rank publishes of its port, and whether two ranks can reach each other: a device reports no error
// for datagrams that do not arrive.
#pragma once

#include "runtime/base/status.h"
#include "runtime/verbs/wire.h"

namespace ibcoll::verbs {

// The address of the port itself; the connection manager adds how greetings arrive there.
Address address_of(const PortChoice& choice);

// CONFIG when they have ports that no packet of the other reaches: by LID and by GID, of different protocols, or of
// different InfiniBand subnets without GIDs that a router knows.
Status check_reach(int rank, const Address& own, int other_rank, const Address& other);

}  // namespace ibcoll::verbs
