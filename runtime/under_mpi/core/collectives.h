// SPDX-License-Identifier: BSD-3-Clause
// The collectives of MPI, run by ibcoll.
#pragma once

#include <mpi.h>

#include "runtime/under_mpi/core/call.h"
#include "runtime/under_mpi/core/communicator.h"
#include "runtime/under_mpi/core/counters.h"

namespace ibcoll::under_mpi {

// The call is the MPI's own: nothing was done, and every other rank of the communicator finds the same (MPI's error
// codes are not negative).
inline constexpr int kFallsThrough = -1;

// A blocking call that does not repeat an earlier one.
int run_anew(Communicator& comm, const Call& call) noexcept;
// Ends a blocking call whose number on the communicator is `number`, after ibcoll returned an error.
int run_failed(Communicator& comm, const Call& call, uint64_t number, ibcoll_status_t status) noexcept;

// A blocking call: an error code of MPI, already raised by the route, or kFallsThrough.
inline int run(Communicator& comm, const Call& call) noexcept {
  const RepeatedCalls::Repeated* const repeated = comm.repeated().find(call);
  if (repeated == nullptr) return run_anew(comm, call);
  const uint64_t number = comm.count_call();
  const ibcoll_status_t status = ibcoll_collective_run(comm.team(), &repeated->args);
  if (status != IBCOLL_OK) return run_failed(comm, call, number, status);
  count_ran(call.collective, repeated->bytes);
  if (repeated->algorithm != nullptr) count_again(*repeated->algorithm);
  return MPI_SUCCESS;
}

// This rank alone makes no call of ibcoll, as its arguments are refused: the others' calls end.
void refuse(Communicator& comm, Collective collective) noexcept;
// The same where ibcoll refuses them, or runs no call on the team any more; the error code of MPI, raised.
int fail(Communicator& comm, Collective collective, ibcoll_status_t status) noexcept;

// Called once for each start, from progress() or from inside of the call that starts, with the error code of MPI (not
// raised). It must not call core, but for start() of a persistent request and release().
struct Completion {
  void (*function)(void* user, int code) = nullptr;
  void* user = nullptr;
};

class HostRequest;

// A nonblocking call: MPI_SUCCESS and its completion will be called; or an error code, raised; or kFallsThrough. Copies
// what `call` points to, buffers aside.
int run_nonblocking(Communicator& comm, const Call& call, Completion completion) noexcept;

// The same for a persistent call, which start() starts any number of times, one after the other. Collective: it may
// wait for the other ranks (MPI 4.0, section 6.12). `comm` must live as long as the request.
int prepare(Communicator& comm, const Call& call, Completion completion, HostRequest** request) noexcept;
int start(HostRequest* request) noexcept;
// Local. Frees a persistent request; one that is in flight once it is complete.
void release(HostRequest* request) noexcept;

}  // namespace ibcoll::under_mpi
