/* SPDX-License-Identifier: BSD-3-Clause
 * Communicators: how they are made, how many there are, how they end. */
#include <stdlib.h>

#include "tests/under_mpi/scenarios.h"

int comm_kinds(int rank, int size) {
  int wrong = 0;
  MPI_Comm dup, halves, reversed, some = MPI_COMM_NULL, alone = MPI_COMM_SELF, grid, inter, merged;
  MPI_Comm_dup(MPI_COMM_WORLD, &dup);
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &halves);
  MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &reversed);
  const int dims[1] = {size}, periods[1] = {1};
  MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &grid);
  MPI_Intercomm_create(halves, 0, MPI_COMM_WORLD, rank % 2 == 0 ? 1 : 0, 7, &inter);
  MPI_Intercomm_merge(inter, rank % 2, &merged);
  /* By the members alone, twice, while the others do something else. */
  for (int round = 0; round < 2; ++round) {
    if (rank < size - 1) {
      MPI_Group all, most;
      const int last = size - 1;
      MPI_Comm_group(MPI_COMM_WORLD, &all);
      MPI_Group_excl(all, 1, &last, &most);
      MPI_Comm_create_group(MPI_COMM_WORLD, most, 3, &some);
      EXPECT(check_comm(some) == 0);
      MPI_Comm_free(&some);
      MPI_Group_free(&all);
      MPI_Group_free(&most);
    }
  }
  const MPI_Comm all[] = {dup, halves, reversed, grid, merged, alone};
  for (int round = 0; round < 3; ++round) {
    for (size_t i = 0; i < sizeof all / sizeof *all; ++i) EXPECT(check_comm(all[i]) == 0);
    /* An intercommunicator: the MPI's own. */
    int sum = 0, one = 1;
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, inter);
    EXPECT(sum == (rank % 2 == 0 ? size / 2 : (size + 1) / 2));
  }
  int reversed_rank, total = 0;
  MPI_Comm_rank(reversed, &reversed_rank);
  EXPECT(reversed_rank == size - 1 - rank);
  MPI_Scan(&rank, &total, 1, MPI_INT, MPI_SUM, reversed);
  EXPECT(total == (size - 1 + rank) * (size - rank) / 2);
  MPI_Comm_free(&dup);
  MPI_Comm_free(&halves);
  MPI_Comm_free(&reversed);
  MPI_Comm_free(&grid);
  MPI_Comm_free(&inter);
  MPI_Comm_free(&merged);
  return wrong;
}

/* TIMES, one after the other. */
int comm_many(int rank, int size) {
  int wrong = 0;
  (void)size;
  const int times = atoi(getenv("TIMES"));
  for (int i = 0; i < times; ++i) {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    EXPECT(check_comm(comm) == 0);
    MPI_Comm_free(&comm);
  }
  return wrong;
}

/* At the same time: as many as the MPI permits, or TIMES. */
int comm_alive(int rank, int size) {
  int wrong = 0, made = 0;
  (void)size;
  const int most = atoi(getenv("TIMES"));
  MPI_Comm* comms = malloc(sizeof *comms * (size_t)most);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  while (made < most && MPI_Comm_dup(MPI_COMM_WORLD, &comms[made]) == MPI_SUCCESS)
    EXPECT(check_comm(comms[made++]) == 0);
  for (int i = 0; i < made; ++i) EXPECT(check_comm(comms[i]) == 0);
  if (rank == 0) printf("%d communicators\n", made);
  while (made > 0) MPI_Comm_free(&comms[--made]);
  free(comms);
  return wrong;
}

int comm_leaked(int rank, int size) {
  int wrong = 0;
  (void)size;
  for (int i = 0; i < 3; ++i) {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    EXPECT(check_comm(comm) == 0);
  }
  return wrong;
}

int comm_idup(int rank, int size) {
  int wrong = 0;
  (void)size;
  MPI_Comm comms[3], inner;
  MPI_Request requests[3];
  MPI_Comm_dup(MPI_COMM_WORLD, &inner);
  EXPECT(check_comm(inner) == 0);
  for (int i = 0; i < 3; ++i) MPI_Comm_idup(i == 1 ? inner : MPI_COMM_WORLD, &comms[i], &requests[i]);
  EXPECT(check_comm(inner) == 0);
  MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
  for (int i = 0; i < 3; ++i) {
    EXPECT(check_comm(comms[i]) == 0);
    MPI_Comm_free(&comms[i]);
  }
  MPI_Comm_free(&inner);
  return wrong;
}
