// SPDX-License-Identifier: BSD-3-Clause
// How this rank reaches one other rank of a team: found once, and kept by those that send to it often.
#pragma once

#include "runtime/engine/team_credit.h"
#include "runtime/transport/transport.h"

namespace ibcoll {

struct PeerLink {
  int peer = -1;  // team rank
  int job = -1;   // the same rank in the job
  Transport* transport = nullptr;
  TeamCredit::Peer* credit = nullptr;  // nullptr: not looked for, or nothing was sent ahead yet in either direction
};

}  // namespace ibcoll
