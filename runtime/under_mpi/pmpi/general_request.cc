// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/under_mpi/pmpi/general_request.h"

#include <new>
#include <utility>

#include "runtime/under_mpi/core/collectives.h"
#include "runtime/under_mpi/core/route.h"
#include "runtime/under_mpi/pmpi/advancer.h"
#include "runtime/under_mpi/pmpi/next.h"
#include "runtime/under_mpi/pmpi/process.h"

namespace ibcoll::under_mpi {

namespace {

// Lives until the MPI frees its request.
struct General {
  explicit General(Communicator& of) : comm(of) { hold(comm); }
  ~General() { drop(comm); }
  General(const General&) = delete;
  General& operator=(const General&) = delete;

  Communicator& comm;
  MPI_Request request = MPI_REQUEST_NULL;
  int code = MPI_SUCCESS;
  bool raised = false;
};

thread_local int failure = MPI_SUCCESS;

// An error of this function, or in the status, would go to the error handler of MPI_COMM_WORLD, as the MPI knows no communicator of the
// request.
int query(void* state, MPI_Status* status) {
  auto* const general = static_cast<General*>(state);
  PMPI_Status_set_elements(status, MPI_BYTE, 0);
  PMPI_Status_set_cancelled(status, 0);
  status->MPI_SOURCE = MPI_ANY_SOURCE;
  status->MPI_TAG = MPI_ANY_TAG;
  status->MPI_ERROR = MPI_SUCCESS;
  if (general->code != MPI_SUCCESS) {
    failure = general->code;
    if (!std::exchange(general->raised, true)) route().raise(general->comm, general->code);
  }
  return MPI_SUCCESS;
}

int free_state(void* state) {
  delete static_cast<General*>(state);
  return MPI_SUCCESS;
}

int cancel(void*, int) { return MPI_SUCCESS; }

void complete(void* state, int code) {
  auto* general = static_cast<General*>(state);
  general->code = code;
  PMPI_Grequest_complete(general->request);
}

}  // namespace

int take_failure() noexcept { return std::exchange(failure, MPI_SUCCESS); }

int start_general(Communicator& comm, const Call& call, MPI_Request* request) noexcept {
  auto* general = new (std::nothrow) General(comm);
  if (general == nullptr) return route().raise(comm, MPI_ERR_NO_MEM);
  // Only once ibcoll has the call: it may fall through.
  MPI_Request started = MPI_REQUEST_NULL;
  if (PMPI_Grequest_start(query, free_state, cancel, general, &started) != MPI_SUCCESS) {
    delete general;
    return kFallsThrough;
  }
  general->request = started;
  const int code = run_nonblocking(comm, call, {complete, general});
  if (code == MPI_SUCCESS) {
    *request = started;
    wake_advancer();
    return code;
  }
  // Frees `general`, too.
  PMPI_Grequest_complete(started);
  IBCOLL_NEXT(Wait)(&started, MPI_STATUS_IGNORE);
  return code;
}

}  // namespace ibcoll::under_mpi
