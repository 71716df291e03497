// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/under_mpi/core/collectives.h"

#include <cstdio>
#include <new>

#include "runtime/under_mpi/core/counters.h"
#include "runtime/under_mpi/core/failure.h"
#include "runtime/under_mpi/core/job.h"
#include "runtime/under_mpi/core/prepared.h"
#include "runtime/under_mpi/core/route.h"
#include "runtime/under_mpi/core/settings.h"

namespace ibcoll::under_mpi {

namespace {

ibcoll_status_t execute_counted(ibcoll_team_t team, const Call& call, const Prepared& prepared,
                                AlgorithmCount** algorithm) {
  ibcoll_request_t request = nullptr;
  ibcoll_status_t status = ibcoll_collective_start(team, &prepared.args, &request);
  if (status != IBCOLL_OK) return status;
  *algorithm = count_algorithm(call.collective, ibcoll_request_algorithm(request));
  status = ibcoll_wait(request);  // frees the request where it returns OK
  if (status != IBCOLL_OK && status != IBCOLL_ERR_BUFFERS_HELD) ibcoll_request_free(request);
  return status;
}

ibcoll_status_t execute(ibcoll_team_t team, const Call& call, Prepared& prepared, AlgorithmCount** algorithm) {
  const ibcoll_status_t status = settings().verbose > 0 ? execute_counted(team, call, prepared, algorithm)
                                                        : ibcoll_collective_run(team, &prepared.args);
  if (status == IBCOLL_ERR_BUFFERS_HELD) prepared.abandon();
  return status;
}

// What the call reads may be overwritten once it has begun.
bool reads_what_it_writes(const Call& call) {
  if (call.collective == Collective::kBarrier || call.collective == Collective::kBcast) return false;
  return call.send.buffer == MPI_IN_PLACE || call.recv.buffer == MPI_IN_PLACE || call.send.buffer == call.recv.buffer;
}

// Where the call itself may be the one that does not match, it must not wait for ranks that have left it.
int run_after_mismatch(Communicator& comm, const Call& call, uint64_t number) {
  constexpr int kMayBeThisOne = 0, kHadBegun = 1, kDidNotBegin = 2;
  const int ended = comm.failed() ? kDidNotBegin : ibcoll_team_last_ended(comm.team());
  comm.fail();
  if (ended == kMayBeThisOne)
    return route().raise(comm, report_failure(comm.rank(), call.collective, IBCOLL_ERR_MISMATCH));
  const bool intact = ended != kHadBegun || !reads_what_it_writes(call);
  const Reason reason = comm.meet(number, call.collective, intact);
  if (reason == Reason::kNone) return route().raise(comm, report_after_mismatch(comm.rank(), call.collective));
  count_fell(call.collective, reason);
  return kFallsThrough;
}

int truncated(const Communicator& comm, const Call& call, const Prepared& prepared) {
  return report_truncated(comm.rank(), call.collective, prepared.own_sent, prepared.own_offered);
}

}  // namespace

void refuse(Communicator& comm, Collective collective) noexcept {
  comm.count_call();
  if (comm.failed()) return;
  const auto name = name_of(collective);
  char why[100];
  std::snprintf(why, sizeof why, "the MPI refuses the arguments of this rank's call of %.*s",
                static_cast<int>(name.size()), name.data());
  ibcoll_team_abort(comm.team(), why);
  comm.fail();
}

int fail(Communicator& comm, Collective collective, ibcoll_status_t status) noexcept {
  const int code = report_failure(comm.rank(), collective, status);
  if (status == IBCOLL_ERR_INVALID_ARGUMENT) ibcoll_team_abort(comm.team(), "the arguments of this rank are refused");
  if (status == IBCOLL_ERR_INVALID_ARGUMENT || status == IBCOLL_ERR_MISMATCH) comm.fail();
  return route().raise(comm, code);
}

int run_failed(Communicator& comm, const Call& call, uint64_t number, ibcoll_status_t status) noexcept {
  return status == IBCOLL_ERR_MISMATCH ? run_after_mismatch(comm, call, number) : fail(comm, call.collective, status);
}

int run_anew(Communicator& comm, const Call& call) noexcept {
  Reason reason = comm.decide(true);
  if (reason == Reason::kNone && !listed(call.collective)) reason = Reason::kNotListed;
  if (reason != Reason::kNone) {
    count_fell(call.collective, reason);
    return kFallsThrough;
  }
  try {
    Prepared prepared;
    reason = prepared.prepare(comm, call);
    if (reason == Reason::kBadArguments) refuse(comm, call.collective);
    if (reason != Reason::kNone) {
      count_fell(call.collective, reason);
      return kFallsThrough;
    }
    const uint64_t number = comm.count_call();
    AlgorithmCount* algorithm = nullptr;
    const ibcoll_status_t status =
        comm.failed() ? IBCOLL_ERR_MISMATCH : execute(comm.team(), call, prepared, &algorithm);
    if (status != IBCOLL_OK) return run_failed(comm, call, number, status);
    prepared.unpack_all();
    count_ran(call.collective, prepared.bytes);
    if (!comm.failed()) comm.repeated().keep(call, prepared, algorithm);
    return prepared.truncated() ? route().raise(comm, truncated(comm, call, prepared)) : MPI_SUCCESS;
  } catch (const std::bad_alloc&) {
    return route().raise(comm, MPI_ERR_NO_MEM);
  }
}

}  // namespace ibcoll::under_mpi
