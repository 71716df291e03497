// SPDX-License-Identifier: BSD-3-Clause
// The job starts in MPI_Init and ends in MPI_Finalize, while Open MPI communicates.
#pragma once

namespace ibcoll::open_mpi {

struct Module;

// Registers for the end of MPI_Init and the beginning of MPI_Finalize. Returns an error code of Open MPI.
int watch_lifetime();
void unwatch_lifetime();

// Between the two. Open MPI runs collectives of its own before, where processes were spawned, and after.
bool mpi_is_running();

// The module of MPI_COMM_WORLD; it lives as long as MPI runs. Without one there is no job.
void remember_world(Module* world);

}  // namespace ibcoll::open_mpi
