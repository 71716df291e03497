// SPDX-License-Identifier: BSD-3-Clause
// Making teams from teams: a list of ranks, or a split by color and key.
#pragma once

#include "runtime/base/status.h"
#include "runtime/context/context_lock.h"
#include "runtime/context/team_handle.h"

namespace ibcoll {

// Collective over the parent; nullptr on ranks that are not members. `guard` holds the context's lock.
// INVALID_ARGUMENT: no list, an empty one, a rank outside of the parent, or twice the same. MISMATCH: another rank's
// list is different, or refused there.
Result<TeamHandle*> create_team(TeamHandle& parent, const int* ranks, int count, ContextLock::Guard& guard);
// Collective over the members, whose host gathers for them; errors as above. `guard` is released meanwhile.
Result<TeamHandle*> create_team_of(Context& context, const ibcoll_members_t& members, ContextLock::Guard& guard);
Result<TeamHandle*> split_team(TeamHandle& parent, int color, int key, ContextLock::Guard& guard);

}  // namespace ibcoll
