/* SPDX-License-Identifier: BSD-3-Clause
 * `scenarios NAME`: runs one; each rank prints what went wrong. */
#include "tests/under_mpi/scenarios.h"

#include <string.h>

static const struct {
  const char* name;
  Scenario* run;
} kScenarios[] = {
    {"comm_kinds", comm_kinds},
    {"comm_many", comm_many},
    {"comm_alive", comm_alive},
    {"comm_leaked", comm_leaked},
    {"comm_idup", comm_idup},
    {"data_bottom", data_bottom},
    {"data_aliases", data_aliases},
    {"data_overlap", data_overlap},
    {"data_freed", data_freed},
    {"data_errors", data_errors},
    {"data_repeated", data_repeated},
    {"counts", counts},
    {"counts_refused", counts_refused},
    {"wait_isend", wait_isend},
    {"wait_nonblocking", wait_nonblocking},
    {"wait_late", wait_late},
    {"wait_threads", wait_threads},
    {"wait_finalize", wait_finalize},
    {"persistent_order", persistent_order},
    {"persistent_mixed", persistent_mixed},
    {"persistent_freed", persistent_freed},
    {"persistent_many", persistent_many},
    {"persistent_wide", persistent_wide},
    {"persistent_failed", persistent_failed},
};

int check_comm(MPI_Comm comm) {
  int rank, size, sum = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  MPI_Barrier(comm);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
  return sum == size * (size - 1) / 2 ? 0 : 1;
}

int main(int argc, char** argv) {
  const char* name = argc > 1 ? argv[1] : "";
  int provided = 0;
  MPI_Init_thread(&argc, &argv, strcmp(name, "wait_threads") == 0 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
  int rank, size, wrong = -1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (size_t i = 0; i < sizeof kScenarios / sizeof *kScenarios; ++i) {
    if (strcmp(name, kScenarios[i].name) == 0) wrong = kScenarios[i].run(rank, size);
  }
  printf("rank %d: %d wrong\n", rank, wrong);
  fflush(stdout);
  MPI_Finalize();
  return wrong != 0;
}
