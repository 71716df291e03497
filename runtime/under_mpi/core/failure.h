// SPDX-License-Identifier: BSD-3-Clause
// A collective that failed in ibcoll, as an error of MPI.
#pragma once

#include <ibcoll.h>

#include "runtime/under_mpi/core/collective.h"

namespace ibcoll::under_mpi {

// Writes one line about this thread's last error of ibcoll; the error code of MPI.
int report_failure(int rank, Collective collective, ibcoll_status_t status) noexcept;
// The same of a call on a communicator on which an earlier one did not match.
int report_after_mismatch(int rank, Collective collective) noexcept;
// The same of a collective that is complete, but for the end of this rank's own block.
int report_truncated(int rank, Collective collective, uint64_t sent, uint64_t offered) noexcept;

}  // namespace ibcoll::under_mpi
