// SPDX-License-Identifier: BSD-3-Clause
// What survivors of a failed team do together: they agree who has died, and make a team of those that live.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/context/context_lock.h"
#include "runtime/context/team_handle.h"

namespace ibcoll {

struct Agreed {
  uint64_t flags;
  std::vector<int> failed;  // ranks of the team, ascending
};

// Collective over the living ranks of the team. `guard` holds the context's lock; it is released meanwhile. Errors: those
// of Agreement.
Result<Agreed> agree_on_failed(TeamHandle& team, uint64_t flags, ContextLock::Guard& guard);
// The same; and the team of the living ranks, in the order of `parent`. Errors too: NO_MEMORY.
Result<TeamHandle*> shrink_team(TeamHandle& parent, ContextLock::Guard& guard);

}  // namespace ibcoll
