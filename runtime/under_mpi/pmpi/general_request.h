// SPDX-License-Identifier: BSD-3-Clause
// Nonblocking calls as generalized requests of the MPI, which its waits and tests complete.
#pragma once

#include <mpi.h>

#include "runtime/under_mpi/core/call.h"
#include "runtime/under_mpi/core/communicator.h"

namespace ibcoll::under_mpi {

// As run_nonblocking().
int start_general(Communicator& comm, const Call& call, MPI_Request* request) noexcept;

// The error code of a request that the MPI has looked at in this thread since the last call; MPI_SUCCESS: there is
// none. The communicator's error handler was called.
int take_failure() noexcept;

}  // namespace ibcoll::under_mpi
