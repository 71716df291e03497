// SPDX-License-Identifier: BSD-3-Clause
// Which processes have the component. ibcoll runs nothing unless each process of MPI_COMM_WORLD has it, in the same
// version: all of them make the job.
#pragma once

#include "runtime/under_mpi/openmpi/open_mpi.h"

namespace ibcoll::open_mpi {

// Publishes that this process has the component, with the exchange of addresses in MPI_Init. Returns an error
// code of Open MPI.
int announce();

// For MPI_COMM_WORLD, once: whether all of its processes have announced this version of the component. Where one has
// not, a line says so to the user.
bool all_have_component(ompi_communicator_t* world);

// Whether all processes of the communicator belong to this job (and not to one that spawned it, or was spawned by it).
bool all_of_this_job(ompi_communicator_t* comm);

}  // namespace ibcoll::open_mpi
