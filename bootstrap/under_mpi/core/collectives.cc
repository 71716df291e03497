// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/under_mpi/core/collectives.h"

#include <new>

#include "bootstrap/under_mpi/core/counters.h"
#include "bootstrap/under_mpi/core/failure.h"
#include "bootstrap/under_mpi/core/job.h"
#include "bootstrap/under_mpi/core/prepared.h"
#include "bootstrap/under_mpi/core/route.h"
#include "bootstrap/under_mpi/core/settings.h"

namespace ibcoll::under_mpi {

namespace {

ibcoll_status_t execute_counted(ibcoll_team_t team, const Call& call, const Prepared& prepared) {
  ibcoll_request_t request = nullptr;
  ibcoll_status_t status = ibcoll_collective_start(team, &prepared.args, &request);
  if (status != IBCOLL_OK) return status;
  count_algorithm(call.collective, ibcoll_request_algorithm(request));
  status = ibcoll_wait(request);  // frees the request where it returns OK
  if (status != IBCOLL_OK && status != IBCOLL_ERR_BUFFERS_HELD) ibcoll_request_free(request);
  return status;
}

ibcoll_status_t execute(ibcoll_team_t team, const Call& call, Prepared& prepared) {
  const ibcoll_status_t status =
      settings().verbose > 0 ? execute_counted(team, call, prepared) : ibcoll_collective_run(team, &prepared.args);
  if (status == IBCOLL_ERR_BUFFERS_HELD) prepared.abandon();
  return status;
}

int truncated(const Communicator& comm, const Call& call, const Prepared& prepared) {
  return report_truncated(comm.rank(), call.collective, prepared.own_sent, prepared.own_offered);
}

}  // namespace

int run(Communicator& comm, const Call& call) noexcept {
  Reason reason = comm.decide(true);
  if (reason == Reason::kNone && !listed(call.collective)) reason = Reason::kNotListed;
  if (reason != Reason::kNone) {
    count_fell(call.collective, reason);
    return kFallsThrough;
  }
  try {
    Prepared prepared;
    reason = prepared.prepare(comm, call);
    if (reason != Reason::kNone) {
      count_fell(call.collective, reason);
      return kFallsThrough;
    }
    const ibcoll_status_t status = execute(comm.team(), call, prepared);
    if (status != IBCOLL_OK) return route().raise(comm, report_failure(comm.rank(), call.collective, status));
    prepared.unpack_all();
    count_ran(call.collective, prepared.bytes);
    return prepared.truncated() ? route().raise(comm, truncated(comm, call, prepared)) : MPI_SUCCESS;
  } catch (const std::bad_alloc&) {
    return route().raise(comm, MPI_ERR_NO_MEM);
  }
}

}  // namespace ibcoll::under_mpi
