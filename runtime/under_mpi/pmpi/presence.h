// SPDX-License-Identifier: BSD-3-Clause
// Whether all ranks have this library.
#pragma once

#include "runtime/under_mpi/core/communicator.h"

namespace ibcoll::under_mpi {

// Collective, at the end of MPI_Init. A rank without this library never takes part, and nothing that the others do can
// make it: rank 0 names it after ten seconds, and ends the job after IBCOLL_TIMEOUT.
void await_all_ranks(const Communicator& world) noexcept;

}  // namespace ibcoll::under_mpi
