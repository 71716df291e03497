// SPDX-License-Identifier: BSD-3-Clause
// The state of this library in the process.
#pragma once

#include <mpi.h>

#include "runtime/under_mpi/core/communicator.h"

namespace ibcoll::under_mpi {

// MPI_Init has succeeded: collective over MPI_COMM_WORLD.
void begin();
// MPI_Finalize is called.
void end();

// What core knows of the communicator lives until the MPI frees the communicator, and while it is held.
void hold(Communicator& comm) noexcept;
void drop(Communicator& comm) noexcept;
// For its error handler; MPI_COMM_WORLD when the program has freed it.
MPI_Comm handle_of(const Communicator& comm) noexcept;

// Core's data about the communicator. NULL: MPI is not running, or there is no such communicator.
Communicator* communicator_of(MPI_Comm comm);

}  // namespace ibcoll::under_mpi
