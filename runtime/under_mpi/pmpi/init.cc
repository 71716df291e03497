// SPDX-License-Identifier: BSD-3-Clause
// The beginning and the end of MPI.
#include "runtime/under_mpi/pmpi/next.h"
#include "runtime/under_mpi/pmpi/process.h"

namespace ibcoll::under_mpi {

IBCOLL_BOTH_NAMES(Init)
extern "C" int PMPI_Init(int* argc, char*** argv) {
  const int code = IBCOLL_NEXT(Init)(argc, argv);
  if (code == MPI_SUCCESS) begin();
  return code;
}

IBCOLL_BOTH_NAMES(Init_thread)
extern "C" int PMPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  const int code = IBCOLL_NEXT(Init_thread)(argc, argv, required, provided);
  if (code == MPI_SUCCESS) begin();
  return code;
}

IBCOLL_BOTH_NAMES(Finalize)
extern "C" int PMPI_Finalize() {
  end();
  return IBCOLL_NEXT(Finalize)();
}

}  // namespace ibcoll::under_mpi
