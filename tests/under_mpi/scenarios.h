/* SPDX-License-Identifier: BSD-3-Clause
 * What MPI programs do, a function each. They return what went wrong on this rank. */
#pragma once

#include <mpi.h>
#include <stdio.h>

typedef int Scenario(int rank, int size);

Scenario comm_kinds, comm_many, comm_alive, comm_leaked, comm_idup;
Scenario data_bottom, data_aliases, data_overlap, data_freed, data_errors, data_repeated;
Scenario counts, counts_refused;
Scenario wait_isend, wait_nonblocking, wait_late, wait_threads, wait_finalize;
Scenario persistent_order, persistent_mixed, persistent_freed, persistent_many, persistent_wide, persistent_failed;

/* A sum that shows whether the communicator works. */
int check_comm(MPI_Comm comm);

#define EXPECT(condition)                                                       \
  do {                                                                          \
    if (!(condition)) {                                                         \
      ++wrong;                                                                  \
      printf("%s:%d: rank %d: not %s\n", __FILE__, __LINE__, rank, #condition); \
    }                                                                           \
  } while (0)
