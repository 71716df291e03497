// SPDX-License-Identifier: BSD-3-Clause
// Collectives from several functions. The cases know each by its comment: the function that calls, and a name.
#include <mpi.h>
#ifdef OPEN_MPI
#include <mpi-ext.h>
#define MPI_Bcast_init MPIX_Bcast_init
#endif

static int numbers[2];

__attribute__((always_inline)) static inline void sum(void) {
  MPI_Allreduce(MPI_IN_PLACE, numbers, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);  // sum: inlined
}

__attribute__((noinline)) static void bits(void) {
  MPI_Request request;
  MPI_Iallreduce(MPI_IN_PLACE, numbers, 2, MPI_INT, MPI_BOR, MPI_COMM_WORLD, &request);  // bits: nonblocking
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void repeat(void) {
  MPI_Request request;
  MPI_Bcast_init(numbers, 2, MPI_INT, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  for (int i = 0; i < 3; ++i) {
    MPI_Start(&request);  // repeat: persistent
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  MPI_Request_free(&request);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Barrier(MPI_COMM_WORLD);  // main: blocking
  sum();
  bits();
  repeat();
  MPI_Finalize();
  return 0;
}
