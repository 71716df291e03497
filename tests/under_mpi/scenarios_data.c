/* SPDX-License-Identifier: BSD-3-Clause
 * Buffers, types and arguments that are legal and rare, and some that are not. */
#include <stdlib.h>
#include <string.h>

#include "tests/under_mpi/scenarios.h"

/* Absolute addresses, from MPI_BOTTOM. */
int data_bottom(int rank, int size) {
  int wrong = 0;
  int numbers[4] = {rank, -1, rank + 100, -1};
  const int lengths[2] = {1, 1};
  MPI_Aint displacements[2];
  MPI_Get_address(&numbers[2], &displacements[0]);
  MPI_Get_address(&numbers[0], &displacements[1]);
  MPI_Datatype type;
  MPI_Type_create_hindexed(2, lengths, displacements, MPI_INT, &type);
  MPI_Type_commit(&type);
  int* all = malloc(sizeof(int) * 2 * (size_t)size);
  MPI_Allgather(MPI_BOTTOM, 1, type, all, 2, MPI_INT, MPI_COMM_WORLD);
  for (int i = 0; i < size; ++i) EXPECT(all[2 * i] == i + 100 && all[2 * i + 1] == i);
  if (rank == 0) {
    MPI_Bcast(MPI_BOTTOM, 1, type, 0, MPI_COMM_WORLD);
  } else {
    int pair[2];
    MPI_Bcast(pair, 2, MPI_INT, 0, MPI_COMM_WORLD);
    EXPECT(pair[0] == 100 && pair[1] == 0);
  }
  /* One run of memory, at an absolute address. */
  MPI_Datatype dense;
  MPI_Aint address;
  MPI_Get_address(numbers, &address);
  const int four = 4;
  MPI_Type_create_hindexed(1, &four, &address, MPI_INT, &dense);
  MPI_Type_commit(&dense);
  MPI_Bcast(MPI_BOTTOM, 1, dense, size - 1, MPI_COMM_WORLD);
  EXPECT(numbers[0] == size - 1 && numbers[2] == size + 99 && numbers[3] == -1);
  MPI_Type_free(&dense);
  MPI_Type_free(&type);
  free(all);
  return wrong;
}

/* Equal buffers instead of MPI_IN_PLACE: MPICH refuses them, Open MPI takes them. */
int data_aliases(int rank, int size) {
  int wrong = 0, number = rank + 1;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  const int code = MPI_Allreduce(&number, &number, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
#ifdef OPEN_MPI
  EXPECT(code == MPI_SUCCESS && number == size * (size + 1) / 2);
#else
  (void)size;
  EXPECT(code != MPI_SUCCESS && number == rank + 1);
#endif
  return wrong;
}

/* Blocks that overlap, with equal values, and in descending order below the buffer's address. */
int data_overlap(int rank, int size) {
  int wrong = 0;
  int* counts = malloc(sizeof(int) * (size_t)size);
  int* displacements = malloc(sizeof(int) * (size_t)size);
  int* buffer = calloc(2 * (size_t)size + 2, sizeof(int));
  for (int i = 0; i < size; ++i) {
    counts[i] = 2;
    displacements[i] = -i;
  }
  const int mine[2] = {1000 - rank, 1001 - rank};
  MPI_Allgatherv(mine, 2, MPI_INT, buffer + size, counts, displacements, MPI_INT, MPI_COMM_WORLD);
  for (int i = -size + 1; i <= 1; ++i) EXPECT(buffer[size + i] == 1000 + i);
  EXPECT(buffer[0] == 0 && buffer[size + 2] == 0);
  free(counts);
  free(displacements);
  free(buffer);
  return wrong;
}

static void subtract_or_add(void* in, void* inout, int* count, MPI_Datatype* type) {
  (void)type;
  for (int i = 0; i < *count; ++i) ((int*)inout)[2 * i] += ((int*)in)[2 * i];
}

/* Freed by the program while the collective runs. */
int data_freed(int rank, int size) {
  int wrong = 0;
  for (int i = 0; i < 20; ++i) {
    MPI_Datatype spread;
    MPI_Op add;
    MPI_Request requests[2];
    int operands[6] = {rank, -1, rank, -1, rank, -1}, sums[6] = {-2, -2, -2, -2, -2, -2},
        copies[6] = {rank, -3, rank, -3, rank, -3};
    MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &spread);
    MPI_Type_commit(&spread);
    MPI_Op_create(subtract_or_add, 1, &add);
    MPI_Iallreduce(operands, sums, 3, spread, add, MPI_COMM_WORLD, &requests[0]);
    MPI_Ibcast(copies, 3, spread, size - 1, MPI_COMM_WORLD, &requests[1]);
    MPI_Type_free(&spread);
    MPI_Op_free(&add);
    EXPECT(spread == MPI_DATATYPE_NULL && add == MPI_OP_NULL);
    /* Another type that may get the handle of the first. */
    MPI_Datatype other;
    MPI_Type_vector(2, 1, 3, MPI_INT, &other);
    MPI_Type_commit(&other);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Type_free(&other);
    for (int k = 0; k < 6; ++k) {
      EXPECT(sums[k] == (k % 2 == 0 ? size * (size - 1) / 2 : -2));
      EXPECT(copies[k] == (k % 2 == 0 ? size - 1 : -3));
    }
  }
  return wrong;
}

static int errors_seen = 0;
static void see_error(MPI_Comm* comm, int* code, ...) {
  (void)comm;
  (void)code;
  ++errors_seen;
}

/* The MPI's own errors, by the handler of the communicator. */
int data_errors(int rank, int size) {
  int wrong = 0, number = 0, class = 0;
  MPI_Errhandler handler;
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  EXPECT(check_comm(comm) == 0);
  MPI_Comm_create_errhandler(see_error, &handler);
  MPI_Comm_set_errhandler(comm, handler);
  MPI_Error_class(MPI_Bcast(&number, 1, MPI_INT, size, comm), &class);
  EXPECT(class == MPI_ERR_ROOT && errors_seen == 1);
  MPI_Error_class(MPI_Allreduce(&rank, &number, -1, MPI_INT, MPI_SUM, comm), &class);
  EXPECT(class == MPI_ERR_COUNT && errors_seen == 2);
  MPI_Error_class(MPI_Bcast(&number, 1, MPI_DATATYPE_NULL, 0, comm), &class);
  EXPECT(class == MPI_ERR_TYPE && errors_seen == 3);
  MPI_Error_class(MPI_Allreduce(&rank, &number, 1, MPI_DOUBLE, MPI_BAND, comm), &class);
  EXPECT(class == MPI_ERR_OP && errors_seen == 4);
  EXPECT(check_comm(comm) == 0);
  MPI_Errhandler_free(&handler);
  MPI_Comm_free(&comm);
  return wrong;
}

/* Calls that differ from an earlier one of their communicator in one argument, and repeat it otherwise. */
int data_repeated(int rank, int size) {
  int wrong = 0;
  const MPI_Comm world = MPI_COMM_WORLD;
  const int others = size * (size - 1) / 2; /* the sum of all ranks */
  int* all = malloc(sizeof(int) * (size_t)size);
  for (int round = 0; round < 40; ++round) {
    int mine[2] = {rank + round, 10 * rank + round}, sums[2] = {-1, -1};
    MPI_Allreduce(&mine[round % 2], &sums[round % 2], 1, MPI_INT, MPI_SUM, world);
    EXPECT(sums[round % 2] == (round % 2 ? 10 : 1) * others + size * round && sums[1 - round % 2] == -1);
    MPI_Allreduce(mine, sums, 1, MPI_INT, MPI_MAX, world);
    EXPECT(sums[0] == size - 1 + round);
    MPI_Allreduce(mine, sums, 2, MPI_INT, MPI_SUM, world);
    EXPECT(sums[0] == others + size * round && sums[1] == 10 * others + size * round);
    sums[0] = rank + 2 * round;
    MPI_Allreduce(MPI_IN_PLACE, sums, 1, MPI_INT, MPI_SUM, world);
    EXPECT(sums[0] == others + 2 * size * round);
    float part = (float)rank + 0.5f, total = -1;
    MPI_Allreduce(&part, &total, 1, MPI_FLOAT, MPI_SUM, world);
    EXPECT(total == (float)others + 0.5f * (float)size);

    const int root = round % size;
    int sent = rank == root ? 7 + round : -1;
    MPI_Bcast(&sent, 1, MPI_INT, root, world);
    EXPECT(sent == 7 + round);
    memset(all, 0xff, sizeof(int) * (size_t)size);
    MPI_Gather(&mine[round % 2], 1, MPI_INT, rank == root ? all : NULL, 1, MPI_INT, root, world);
    for (int i = 0; i < size; ++i) EXPECT(rank != root || all[i] == (round % 2 ? 10 : 1) * i + round);
    for (int i = 0; i < size; ++i) all[i] = 100 * i + round;
    for (int in_place = 0; in_place < 2; ++in_place) {
      const int keeps = rank == root && in_place;
      sent = -1;
      MPI_Scatter(rank == root ? all : NULL, 1, MPI_INT, keeps ? MPI_IN_PLACE : &sent, 1, MPI_INT, root, world);
      EXPECT(sent == (keeps ? -1 : 100 * rank + round));
    }

    /* In Open MPI the second type often gets the handle of the first one. */
    MPI_Datatype type;
    MPI_Type_vector(1 + round % 2, 1, 2, MPI_INT, &type);
    MPI_Type_commit(&type);
    int strided[3] = {rank == 0 ? round : -1, -1, rank == 0 ? round + 1 : -1};
    MPI_Bcast(strided, 1, type, 0, world);
    EXPECT(strided[0] == round && strided[1] == -1 && strided[2] == (round % 2 || rank == 0 ? round + 1 : -1));
    MPI_Type_free(&type);
  }
  free(all);
  return wrong;
}
