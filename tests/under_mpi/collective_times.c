/* SPDX-License-Identifier: BSD-3-Clause
 * A profiling tool: seconds that a rank spends in blocking collectives, from MPI_Init to MPI_Finalize. There rank 0 prints
 * the mean of all ranks. */
#include <mpi.h>
#include <stdio.h>

static double seconds;

#define TIMED(Name, parameters, arguments)    \
  int MPI_##Name parameters {                 \
    const double begin = PMPI_Wtime();        \
    const int status = PMPI_##Name arguments; \
    seconds += PMPI_Wtime() - begin;          \
    return status;                            \
  }

TIMED(Barrier, (MPI_Comm comm), (comm))
TIMED(Bcast, (void* data, int count, MPI_Datatype type, int root, MPI_Comm comm), (data, count, type, root, comm))
TIMED(Allgather,
      (const void* send, int sent, MPI_Datatype send_type, void* recv, int received, MPI_Datatype recv_type,
       MPI_Comm comm),
      (send, sent, send_type, recv, received, recv_type, comm))
TIMED(Allgatherv,
      (const void* send, int sent, MPI_Datatype send_type, void* recv, const int* counts, const int* displacements,
       MPI_Datatype recv_type, MPI_Comm comm),
      (send, sent, send_type, recv, counts, displacements, recv_type, comm))
TIMED(Alltoall,
      (const void* send, int sent, MPI_Datatype send_type, void* recv, int received, MPI_Datatype recv_type,
       MPI_Comm comm),
      (send, sent, send_type, recv, received, recv_type, comm))
TIMED(Alltoallv,
      (const void* send, const int* sent, const int* from, MPI_Datatype send_type, void* recv, const int* received,
       const int* to, MPI_Datatype recv_type, MPI_Comm comm),
      (send, sent, from, send_type, recv, received, to, recv_type, comm))
TIMED(Alltoallw,
      (const void* send, const int* sent, const int* from, const MPI_Datatype* send_types, void* recv,
       const int* received, const int* to, const MPI_Datatype* recv_types, MPI_Comm comm),
      (send, sent, from, send_types, recv, received, to, recv_types, comm))
TIMED(Allreduce, (const void* send, void* recv, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
      (send, recv, count, type, op, comm))
TIMED(Gather,
      (const void* send, int sent, MPI_Datatype send_type, void* recv, int received, MPI_Datatype recv_type, int root,
       MPI_Comm comm),
      (send, sent, send_type, recv, received, recv_type, root, comm))
TIMED(Gatherv,
      (const void* send, int sent, MPI_Datatype send_type, void* recv, const int* counts, const int* displacements,
       MPI_Datatype recv_type, int root, MPI_Comm comm),
      (send, sent, send_type, recv, counts, displacements, recv_type, root, comm))
TIMED(Scatter,
      (const void* send, int sent, MPI_Datatype send_type, void* recv, int received, MPI_Datatype recv_type, int root,
       MPI_Comm comm),
      (send, sent, send_type, recv, received, recv_type, root, comm))
TIMED(Scatterv,
      (const void* send, const int* counts, const int* displacements, MPI_Datatype send_type, void* recv, int received,
       MPI_Datatype recv_type, int root, MPI_Comm comm),
      (send, counts, displacements, send_type, recv, received, recv_type, root, comm))
TIMED(Reduce, (const void* send, void* recv, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm),
      (send, recv, count, type, op, root, comm))
TIMED(Reduce_scatter, (const void* send, void* recv, const int* counts, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
      (send, recv, counts, type, op, comm))
TIMED(Reduce_scatter_block, (const void* send, void* recv, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
      (send, recv, count, type, op, comm))
TIMED(Scan, (const void* send, void* recv, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
      (send, recv, count, type, op, comm))
TIMED(Exscan, (const void* send, void* recv, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
      (send, recv, count, type, op, comm))

int MPI_Finalize(void) {
  double sum = 0;
  int rank, size;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  PMPI_Comm_size(MPI_COMM_WORLD, &size);
  PMPI_Reduce(&seconds, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    printf("\nseconds in collectives: %.6f\n", sum / size);
    fflush(stdout);
  }
  return PMPI_Finalize();
}
