// SPDX-License-Identifier: BSD-3-Clause
// The identity of a team: its members, and an id that no other team of any member ever had.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/under_mpi/core/communicator.h"

namespace ibcoll::under_mpi {

// Ranks of the members in MPI_COMM_WORLD. False: a member is not in it.
bool ranks_in_world(const Communicator& comm, std::vector<int>* ranks);

// Proposes an id for a new team. The members take the greatest proposal: it is above every id that
// one of them has seen, and no rank makes the same proposal twice, nor two ranks the same.
int64_t propose_team_id() noexcept;
void saw_team_id(int64_t id) noexcept;

}  // namespace ibcoll::under_mpi
