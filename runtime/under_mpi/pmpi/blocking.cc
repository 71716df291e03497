// SPDX-License-Identifier: BSD-3-Clause
// MPI_Barrier, MPI_Bcast, ... and, where the MPI has them, MPI_Bcast_c, ...
#include "runtime/under_mpi/core/collectives.h"
#include "runtime/under_mpi/pmpi/calls.h"
#include "runtime/under_mpi/pmpi/next.h"
#include "runtime/under_mpi/pmpi/process.h"

namespace ibcoll::under_mpi {

namespace {

template <typename Own>
int blocking(MPI_Comm handle, const Call& call, Own own) {
  if (Communicator* comm = communicator_of(handle)) {
    if (const int code = run(*comm, call); code != kFallsThrough) return code;
  }
  return own();
}

}  // namespace

// Parameters and arguments come with their own parentheses.
// NOLINTBEGIN(bugprone-macro-parentheses)
#define FORM(NAME, MAKER, SUFFIX, PARAMETERS, MADE_FROM, ARGUMENTS)                                     \
  IBCOLL_BOTH_NAMES(NAME##SUFFIX)                                                                       \
  extern "C" int PMPI_##NAME##SUFFIX PARAMETERS {                                                       \
    return blocking(comm, calls::MAKER MADE_FROM, [&] { return IBCOLL_NEXT(NAME##SUFFIX) ARGUMENTS; }); \
  }
// NOLINTEND(bugprone-macro-parentheses)
#include "runtime/under_mpi/pmpi/every_function.inc"

}  // namespace ibcoll::under_mpi
