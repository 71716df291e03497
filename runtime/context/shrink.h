// SPDX-License-Identifier: BSD-3-Clause
// What survivors of a failed team do together: they agree who has died, and make a team of those that live.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/context/agreement.h"
#include "runtime/context/context_lock.h"
#include "runtime/context/team_handle.h"
#include "runtime/context/teams.h"

namespace ibcoll {

struct Agreed {
  uint64_t flags;
  std::vector<int> failed;  // ranks of the team, ascending
};

// Collective over the living ranks of the team. `guard` holds the context's lock; it is released meanwhile. Errors: those
// of Agreement.
Result<Agreed> agree_on_failed(TeamHandle& team, Agreement& agreement, uint64_t flags, ContextLock::Guard& guard);
// Teams::make_by_members(), with a valid list.
using MakeTeam = std::function<Result<TeamHandle*>(const std::vector<int>& jobs, int self, uint64_t epoch,
                                                   const Teams::Gather& gather)>;
// The same; and the team of the living ranks, in the order of `parent`. Errors too: those of `make`.
Result<TeamHandle*> shrink_team(TeamHandle& parent, Agreement& agreement, const MakeTeam& make,
                                ContextLock::Guard& guard);

}  // namespace ibcoll
