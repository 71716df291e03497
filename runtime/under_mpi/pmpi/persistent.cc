// SPDX-License-Identifier: BSD-3-Clause
// MPI_Barrier_init, MPI_Bcast_init, ... and MPI_Bcast_init_c, ... of MPI 4.0; MPIX_Barrier_init, ... of Open MPI 4.
#include <mpi.h>
#ifdef OPEN_MPI
#include <mpi-ext.h>
#endif

#include "runtime/under_mpi/core/collectives.h"
#include "runtime/under_mpi/pmpi/calls.h"
#include "runtime/under_mpi/pmpi/next.h"
#include "runtime/under_mpi/pmpi/persistent_request.h"
#include "runtime/under_mpi/pmpi/process.h"

namespace ibcoll::under_mpi {

namespace {

template <typename Own>
int persistent(MPI_Comm handle, const Call& call, MPI_Request* request, Own own) {
  if (Communicator* comm = communicator_of(handle)) {
    if (const int code = make_persistent(*comm, call, request); code != kFallsThrough) return code;
  }
  return own();
}

}  // namespace

#if defined(OPEN_MPI) && OMPI_MAJOR_VERSION < 5
#define IBCOLL_INIT(NAME, SUFFIX) MPIX_##NAME##_init##SUFFIX, PMPIX_##NAME##_init##SUFFIX
#else
#define IBCOLL_INIT(NAME, SUFFIX) MPI_##NAME##_init##SUFFIX, PMPI_##NAME##_init##SUFFIX
#endif
#define IBCOLL_EXPAND(...) __VA_ARGS__
#define IBCOLL_WITH(MACRO, ...) MACRO(__VA_ARGS__)
#define IBCOLL_PERSISTENT(MPI_NAME, PMPI_NAME, MAKER, PARAMETERS, MADE_FROM, ARGUMENTS)                   \
  IBCOLL_TWO_NAMES(MPI_NAME, PMPI_NAME)                                                                   \
  extern "C" int PMPI_NAME(IBCOLL_EXPAND PARAMETERS, MPI_Info info, MPI_Request* request) {               \
    return persistent(comm, calls::MAKER MADE_FROM, request,                                              \
                      [&] { return IBCOLL_NEXT_OF(PMPI_NAME)(IBCOLL_EXPAND ARGUMENTS, info, request); }); \
  }
#define FORM(NAME, MAKER, SUFFIX, PARAMETERS, MADE_FROM, ARGUMENTS) \
  IBCOLL_WITH(IBCOLL_PERSISTENT, IBCOLL_INIT(NAME, SUFFIX), MAKER, PARAMETERS, MADE_FROM, ARGUMENTS)
#include "runtime/under_mpi/pmpi/every_function.inc"

}  // namespace ibcoll::under_mpi
