// SPDX-License-Identifier: BSD-3-Clause
// MPI_Ibarrier, MPI_Ibcast, ... and, where the MPI has them, MPI_Ibcast_c, ...
#include "bootstrap/under_mpi/core/collectives.h"
#include "bootstrap/under_mpi/pmpi/calls.h"
#include "bootstrap/under_mpi/pmpi/general_request.h"
#include "bootstrap/under_mpi/pmpi/next.h"
#include "bootstrap/under_mpi/pmpi/process.h"

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
#define IBCOLL_NONBLOCKING(NAME, MAKER, PARAMETERS, MADE_FROM, ARGUMENTS)                    \
  IBCOLL_BOTH_NAMES(NAME)                                                                    \
  extern "C" int PMPI_##NAME(IBCOLL_EXPAND PARAMETERS, MPI_Request* request) {               \
    return nonblocking(comm, calls::MAKER MADE_FROM, request,                                \
                       [&] { return IBCOLL_NEXT(NAME)(IBCOLL_EXPAND ARGUMENTS, request); }); \
  }

IBCOLL_NONBLOCKING(Ibarrier, barrier, (MPI_Comm comm), (), (comm))

#define COUNT int
#define DISPLACEMENT int
#define COLLECTIVE(NAME, MAKER, PARAMETERS, MADE_FROM, ARGUMENTS) \
  IBCOLL_NONBLOCKING(I##MAKER, MAKER, PARAMETERS, MADE_FROM, ARGUMENTS)
#include "bootstrap/under_mpi/pmpi/functions.inc"

#if MPI_VERSION >= 4
#undef COUNT
#undef DISPLACEMENT
#undef COLLECTIVE
#define COUNT MPI_Count
#define DISPLACEMENT MPI_Aint
#define COLLECTIVE(NAME, MAKER, PARAMETERS, MADE_FROM, ARGUMENTS) \
  IBCOLL_NONBLOCKING(I##MAKER##_c, MAKER, PARAMETERS, MADE_FROM, ARGUMENTS)
#include "bootstrap/under_mpi/pmpi/functions.inc"
#endif

}  // namespace ibcoll::under_mpi
