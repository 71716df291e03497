// SPDX-License-Identifier: BSD-3-Clause
// MPI_Ibarrier, MPI_Ibcast, ... and, where the MPI has them, MPI_Ibcast_c, ...
#include "runtime/under_mpi/core/collectives.h"
#include "runtime/under_mpi/pmpi/calls.h"
#include "runtime/under_mpi/pmpi/general_request.h"
#include "runtime/under_mpi/pmpi/next.h"
#include "runtime/under_mpi/pmpi/process.h"

namespace ibcoll::under_mpi {

namespace {

template <typename Own>
int nonblocking(MPI_Comm handle, const Call& call, MPI_Request* request, Own own) {
  if (Communicator* comm = communicator_of(handle)) {
    if (const int code = start_general(*comm, call, request); code != kFallsThrough) return code;
  }
  return own();
}

}  // namespace

#define IBCOLL_EXPAND(...) __VA_ARGS__
#define FORM(NAME, MAKER, SUFFIX, PARAMETERS, MADE_FROM, ARGUMENTS)                                      \
  IBCOLL_BOTH_NAMES(I##MAKER##SUFFIX)                                                                    \
  extern "C" int PMPI_I##MAKER##SUFFIX(IBCOLL_EXPAND PARAMETERS, MPI_Request* request) {                 \
    return nonblocking(comm, calls::MAKER MADE_FROM, request,                                            \
                       [&] { return IBCOLL_NEXT(I##MAKER##SUFFIX)(IBCOLL_EXPAND ARGUMENTS, request); }); \
  }
#include "runtime/under_mpi/pmpi/every_function.inc"

}  // namespace ibcoll::under_mpi
