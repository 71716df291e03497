/* SPDX-License-Identifier: BSD-3-Clause
 * An MPI program that runs ibcoll on a communicator of its own: the odd and the even ranks apart, in reverse order.
 * With the argument "absent", the first rank of each of these never creates its context. With "unasked", ibcoll finds the
 * launcher's connection in use by MPI. */
#include <ibcoll_mpi_bootstrap.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "alltoall.h"

static int refused_calls_are_errors(void) {
  ibcoll_bootstrap_t bootstrap;
  return ibcoll_mpi_bootstrap(MPI_COMM_NULL, &bootstrap) == IBCOLL_ERR_INVALID_ARGUMENT &&
         ibcoll_mpi_bootstrap(MPI_COMM_WORLD, NULL) == IBCOLL_ERR_INVALID_ARGUMENT &&
         *ibcoll_mpi_last_error() != '\0' && ibcoll_mpi_bootstrap_free(NULL) == IBCOLL_OK;
}

int main(int argc, char** argv) {
  ibcoll_bootstrap_t bootstrap;
  /* Before MPI runs: an error, not a crash. */
  int bad = ibcoll_mpi_bootstrap(MPI_COMM_WORLD, &bootstrap) != IBCOLL_ERR_INVALID_ARGUMENT;

  MPI_Init(&argc, &argv);
  int rank, size, split_rank, split_size, ranks;
  MPI_Comm split;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &split);
  MPI_Comm_rank(split, &split_rank);
  MPI_Comm_size(split, &split_size);
  bad += !refused_calls_are_errors();
  if (argc > 1 && strcmp(argv[1], "unasked") == 0) {
    printf("%ld wrong without ibcoll_mpi_bootstrap\n", checked_alltoall(NULL, 5000, &ranks));
    return MPI_Finalize();
  }

  if (ibcoll_mpi_bootstrap(split, &bootstrap) != IBCOLL_OK) {
    fprintf(stderr, "%s\n", ibcoll_mpi_last_error());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  bad += bootstrap.rank != split_rank || bootstrap.size != split_size;
  while (argc > 1 && split_rank == 0) sleep(1); /* until another rank aborts the job */
  const ibcoll_context_params_t params = {sizeof params, &bootstrap};
  const long wrong = checked_alltoall(&params, 5000, &ranks);
  bad += wrong >= 0 && ranks != split_size;
  if (argc > 1) { /* nor does that rank take part in what ends MPI */
    char mine = 0, all[64];
    fprintf(stderr, "%s\n", ibcoll_mpi_last_error());
    bootstrap.allgather(bootstrap.user, &mine, all, 1);
    fprintf(stderr, "the next exchange: %s\n", ibcoll_mpi_last_error());
    MPI_Abort(MPI_COMM_WORLD, 3);
  }
  bad += ibcoll_mpi_bootstrap_free(&bootstrap) != IBCOLL_OK;
  MPI_Comm_free(&split);
  printf("%d of %d: %ld wrong, %d bad\n", split_rank, split_size, wrong, bad);
  MPI_Finalize();
  return wrong != 0 || bad != 0;
}
