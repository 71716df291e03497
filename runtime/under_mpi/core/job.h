// SPDX-License-Identifier: BSD-3-Clause
// The one ibcoll context of the process, over MPI_COMM_WORLD.
#pragma once

#include <ibcoll.h>

#include "runtime/under_mpi/core/collective.h"
#include "runtime/under_mpi/core/communicator.h"

namespace ibcoll::under_mpi {

// Collective over MPI_COMM_WORLD, in any call of MPI in which all of its ranks take part. Creates the context and
// agrees on it: where one rank fails, or is off, none uses ibcoll, and the lowest of those that fail says so in one
// line. Does nothing the second time. Without it, the first blocking collective on MPI_COMM_WORLD starts the job.
void start_job(Communicator& world) noexcept;
// The job was started before any collective of another communicator could be called (in MPI_Init): when it has failed,
// no communicator needs to ask its ranks.
void everybody_knows_the_job() noexcept;
bool everybody_knows() noexcept;
// Collective over MPI_COMM_WORLD, in MPI_Finalize while the MPI still communicates: frees the teams of all
// communicators that exist, ends the context, writes the counters. Collectives fall through from here on.
void end_job(Communicator& world) noexcept;

// NULL while there is none.
ibcoll_context_t context() noexcept;
// Why there is no context; kNone where there is one. kNotRunning until start_job().
Reason job_state() noexcept;
// Whether all ranks' settings list the collective.
bool listed(Collective collective) noexcept;

// Advances all that is in flight in ibcoll and runs the completions of nonblocking calls; returns the number of events.
// For the progress callback of the MPI: cheap while nothing is in flight, safe when called from inside of core.
int progress() noexcept;

}  // namespace ibcoll::under_mpi
