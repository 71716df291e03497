// SPDX-License-Identifier: BSD-3-Clause
// Nonblocking calls as generalized requests of the MPI, which its waits and tests complete.
#pragma once

#include <mpi.h>

#include "bootstrap/under_mpi/core/call.h"
#include "bootstrap/under_mpi/core/communicator.h"

namespace ibcoll::under_mpi {

// As run_nonblocking().
int start_general(Communicator& comm, const Call& call, MPI_Request* request) noexcept;

}  // namespace ibcoll::under_mpi
