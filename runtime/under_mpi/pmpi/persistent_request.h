// SPDX-License-Identifier: BSD-3-Clause
// Persistent calls as persistent receives of the MPI, which its starts, waits, tests and MPI_Request_free know.
#pragma once

#include <mpi.h>

#include "runtime/under_mpi/core/call.h"
#include "runtime/under_mpi/core/communicator.h"

namespace ibcoll::under_mpi {

// Once, when MPI runs, and before it ends. Local.
void open_persistent_requests() noexcept;
void close_persistent_requests() noexcept;

// As prepare(); *request is inactive.
int make_persistent(Communicator& comm, const Call& call, MPI_Request* request) noexcept;

}  // namespace ibcoll::under_mpi
