// SPDX-License-Identifier: BSD-3-Clause
// MPI_Barrier, MPI_Bcast, ... and, where the MPI has them, MPI_Bcast_c, ...
#include "bootstrap/under_mpi/core/collectives.h"
#include "bootstrap/under_mpi/pmpi/calls.h"
#include "bootstrap/under_mpi/pmpi/next.h"
#include "bootstrap/under_mpi/pmpi/process.h"

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
#define IBCOLL_BLOCKING(NAME, MAKER, PARAMETERS, MADE_FROM, ARGUMENTS)                          \
  IBCOLL_BOTH_NAMES(NAME)                                                                       \
  extern "C" int PMPI_##NAME PARAMETERS {                                                       \
    return blocking(comm, calls::MAKER MADE_FROM, [&] { return IBCOLL_NEXT(NAME) ARGUMENTS; }); \
  }
// NOLINTEND(bugprone-macro-parentheses)

IBCOLL_BLOCKING(Barrier, barrier, (MPI_Comm comm), (), (comm))

#define COUNT int
#define DISPLACEMENT int
#define COLLECTIVE(NAME, MAKER, PARAMETERS, MADE_FROM, ARGUMENTS) \
  IBCOLL_BLOCKING(NAME, MAKER, PARAMETERS, MADE_FROM, ARGUMENTS)
#include "bootstrap/under_mpi/pmpi/functions.inc"

#if MPI_VERSION >= 4
#undef COUNT
#undef DISPLACEMENT
#undef COLLECTIVE
#define COUNT MPI_Count
#define DISPLACEMENT MPI_Aint
#define COLLECTIVE(NAME, MAKER, PARAMETERS, MADE_FROM, ARGUMENTS) \
  IBCOLL_BLOCKING(NAME##_c, MAKER, PARAMETERS, MADE_FROM, ARGUMENTS)
#include "bootstrap/under_mpi/pmpi/functions.inc"
#endif

}  // namespace ibcoll::under_mpi
