// SPDX-License-Identifier: BSD-3-Clause
// Requests of Open MPI for nonblocking and persistent collectives that ibcoll runs.
#pragma once

#include "runtime/under_mpi/core/call.h"
#include "runtime/under_mpi/openmpi/module.h"

namespace ibcoll::open_mpi {

// When the component starts and ends. Both return an error code of Open MPI.
int open_requests();
int close_requests();

// MPI_SUCCESS: *request is in flight; else an error code of MPI, or core's kFallsThrough.
int start_nonblocking(Module& module, const under_mpi::Call& call, ompi_request_t** request);
// The same; *request is inactive.
int make_persistent(Module& module, const under_mpi::Call& call, ompi_request_t** request);

}  // namespace ibcoll::open_mpi
