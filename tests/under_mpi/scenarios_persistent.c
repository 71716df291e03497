/* SPDX-License-Identifier: BSD-3-Clause
 * Persistent collectives: in which order they start, beside what else they complete, what outlives what. */
#include <mpi.h>
#include <stdlib.h>
#ifdef OPEN_MPI
#include <mpi-ext.h>
#define INIT(NAME) MPIX_##NAME##_init
#else
#define INIT(NAME) MPI_##NAME##_init
#endif

#include "tests/under_mpi/scenarios.h"

enum { kCalls = 4 };

/* Each rank starts them in an order of its own, and calls others in between (MPI 4.0, section 6.12). */
int persistent_order(int rank, int size) {
  int wrong = 0, mine[kCalls], sums[kCalls];
  MPI_Request requests[kCalls];
  for (int i = 0; i < kCalls; ++i)
    INIT(Allreduce)(&mine[i], &sums[i], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[i]);
  for (int round = 0; round < 50; ++round) {
    for (int i = 0; i < kCalls; ++i) mine[i] = (i + 1) * (rank + round), sums[i] = -1;
    for (int i = 0; i < kCalls; ++i) {
      if (i == rank % kCalls) EXPECT(check_comm(MPI_COMM_WORLD) == 0);
      MPI_Start(&requests[(i + rank + round) % kCalls]);
    }
    MPI_Waitall(kCalls, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < kCalls; ++i) EXPECT(sums[i] == (i + 1) * (size * (size - 1) / 2 + size * round));
  }
  for (int i = 0; i < kCalls; ++i) {
    MPI_Request_free(&requests[i]);
    EXPECT(requests[i] == MPI_REQUEST_NULL);
  }
  return wrong;
}

/* An inactive request is complete for all that wait and test, and stays what it is. */
static int inactive(MPI_Request* request) {
  int rank, wrong = 0, flag = 0, index = 0, number = 0, count = -1;
  const MPI_Request before = *request;
  MPI_Status status;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Wait(request, &status);
  MPI_Get_count(&status, MPI_BYTE, &count);
  EXPECT(count == 0 && status.MPI_SOURCE == MPI_ANY_SOURCE);
  MPI_Test(request, &flag, MPI_STATUS_IGNORE);
  EXPECT(flag);
  flag = 0;
  MPI_Testall(1, request, &flag, MPI_STATUSES_IGNORE);
  EXPECT(flag);
  MPI_Waitany(1, request, &index, MPI_STATUS_IGNORE);
  EXPECT(index == MPI_UNDEFINED);
  MPI_Waitsome(1, request, &number, &index, MPI_STATUSES_IGNORE);
  EXPECT(number == MPI_UNDEFINED);
  flag = 0;
  MPI_Request_get_status(*request, &flag, MPI_STATUS_IGNORE);
  EXPECT(flag && *request == before);
  return wrong;
}

/* Persistent requests of the MPI and of the program's collectives in one MPI_Startall, completed by every call. */
int persistent_mixed(int rank, int size) {
  int wrong = 0, number = rank, sum = 0, from = -1, other = 0;
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  MPI_Request requests[5];
  INIT(Barrier)(MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]);
  MPI_Recv_init(&from, 1, MPI_INT, left, 3, MPI_COMM_WORLD, &requests[1]);
  INIT(Allreduce)(&number, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[2]);
  MPI_Send_init(&rank, 1, MPI_INT, right, 3, MPI_COMM_WORLD, &requests[3]);
  for (int round = 0; round < 20; ++round) {
    int done = 0, flag = 0, indices[5];
    from = sum = -1;
    EXPECT(inactive(&requests[0]) == 0 && inactive(&requests[2]) == 0);
    MPI_Startall(4, requests);
    MPI_Iallreduce(&rank, &other, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[4]);
    switch (round % 4) {
      case 0:
        MPI_Waitall(5, requests, MPI_STATUSES_IGNORE);
        break;
      case 1:
        for (int index; done < 5; ++done) {
          MPI_Waitany(5, requests, &index, MPI_STATUS_IGNORE);
          EXPECT(index != MPI_UNDEFINED);
        }
        break;
      case 2:
        for (int number_done = 0; done < 5; done += number_done)
          MPI_Waitsome(5, requests, &number_done, indices, MPI_STATUSES_IGNORE);
        break;
      default:
        while (!flag) MPI_Testall(5, requests, &flag, MPI_STATUSES_IGNORE);
    }
    EXPECT(from == left && sum == size * (size - 1) / 2 && other == sum);
    EXPECT(requests[4] == MPI_REQUEST_NULL && requests[0] != MPI_REQUEST_NULL && requests[2] != MPI_REQUEST_NULL);
  }
  for (int i = 0; i < 4; ++i) MPI_Request_free(&requests[i]);
  return wrong;
}

static void add(void* in, void* inout, int* count, MPI_Datatype* type) {
  (void)type;
  for (int i = 0; i < *count; ++i) ((int*)inout)[i] += ((int*)in)[i];
}

/* The program frees the communicator, the type and the operation of a request, and starts it then. */
int persistent_freed(int rank, int size) {
  int wrong = 0;
  for (int round = 0; round < 10; ++round) {
    MPI_Comm comm;
    MPI_Datatype pair;
    MPI_Op op;
    MPI_Request requests[2];
    int spread[4], sum = -1;
    /* Before any other collective on it. */
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Type_vector(2, 1, 2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    MPI_Op_create(add, 1, &op);
    INIT(Bcast)(spread, 1, pair, 0, comm, MPI_INFO_NULL, &requests[0]);
    INIT(Allreduce)(&rank, &sum, 1, MPI_INT, op, comm, MPI_INFO_NULL, &requests[1]);
    MPI_Comm_free(&comm);
    /* Another communicator, with other ranks, may get its address. */
    MPI_Comm_split(MPI_COMM_WORLD, rank, 0, &comm);
    EXPECT(check_comm(comm) == 0);
    MPI_Type_free(&pair);
    MPI_Op_free(&op);
    for (int again = 0; again < 3; ++again) {
      for (int i = 0; i < 4; ++i) spread[i] = rank == 0 ? again + i : -1;
      sum = -1;
      MPI_Startall(2, requests);
      MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
      EXPECT(spread[0] == again && spread[2] == again + 2 && (rank == 0 || spread[1] == -1));
      EXPECT(sum == size * (size - 1) / 2);
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
    MPI_Comm_free(&comm);
  }
  return wrong;
}

/* TIMES of them at once, and never freed. */
int persistent_many(int rank, int size) {
  int wrong = 0;
  const int times = atoi(getenv("TIMES"));
  int* sums = calloc((size_t)times, sizeof *sums);
  MPI_Request* requests = malloc(sizeof *requests * (size_t)times);
  for (int i = 0; i < times; ++i)
    INIT(Allreduce)(&rank, &sums[i], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[i]);
  MPI_Startall(times, requests);
  MPI_Waitall(times, requests, MPI_STATUSES_IGNORE);
  for (int i = 0; i < times; ++i) EXPECT(sums[i] == size * (size - 1) / 2);
  free(requests);
  free(sums);
  return wrong;
}

/* Wide counts, where the MPI has them. */
int persistent_wide(int rank, int size) {
  int wrong = 0;
#if MPI_VERSION >= 4
  MPI_Count* counts = malloc(sizeof *counts * (size_t)size);
  MPI_Aint* displacements = malloc(sizeof *displacements * (size_t)size);
  int* all = malloc(sizeof *all * (size_t)size);
  MPI_Request request;
  for (int i = 0; i < size; ++i) counts[i] = 1, displacements[i] = size - 1 - i;
  MPI_Allgatherv_init_c(&rank, 1, MPI_INT, all, counts, displacements, MPI_INT, MPI_COMM_WORLD, MPI_INFO_NULL,
                        &request);
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < size; ++i) all[i] = -1;
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; i < size; ++i) EXPECT(all[size - 1 - i] == i);
  }
  MPI_Request_free(&request);
  free(all);
  free(displacements);
  free(counts);
#else
  (void)rank;
  (void)size;
#endif
  return wrong;
}

/* One rank is later than IBCOLL_TIMEOUT: what waits returns an error, and the next call does, too. */
int persistent_failed(int rank, int size) {
  int wrong = 0, sum = 0;
  MPI_Request request;
  (void)size;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  INIT(Allreduce)(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  if (rank != 0) {
    EXPECT(MPI_Start(&request) == MPI_SUCCESS);
    EXPECT(MPI_Wait(&request, MPI_STATUS_IGNORE) != MPI_SUCCESS);
    /* Open MPI has freed it; in MPICH it cannot be started again. */
    if (request != MPI_REQUEST_NULL) {
      EXPECT(MPI_Start(&request) != MPI_SUCCESS);
      EXPECT(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    }
    MPI_Send(&rank, 1, MPI_INT, 0, 9, MPI_COMM_WORLD);
  } else {
    for (int other = 1; other < size; ++other) MPI_Recv(&sum, 1, MPI_INT, other, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
  return wrong;
}
