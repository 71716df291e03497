// SPDX-License-Identifier: BSD-3-Clause
// All communicators of the process that exist, and teams whose communicator was freed while requests are in flight.
#pragma once

#include <ibcoll.h>

#include "runtime/under_mpi/core/communicator.h"

namespace ibcoll::under_mpi {

void enter(Communicator& comm) noexcept;
void forget(Communicator& comm) noexcept;
// leave(reason) of every communicator. False: a team is still in use.
bool leave_all(Reason reason) noexcept;

// Frees the team now or, where it is in use, at a later call. The world's team and NULL are left alone.
void free_team(ibcoll_team_t team) noexcept;
// Tries those again that were in use. False: some still are.
bool free_late_teams() noexcept;

}  // namespace ibcoll::under_mpi
