/* SPDX-License-Identifier: BSD-3-Clause
 * Which rank waits for which. */
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "tests/under_mpi/scenarios.h"

/* The message needs its sender's progress while that is in the barrier, and the receiver comes to the barrier after it. */
int wait_isend(int rank, int size) {
  int wrong = 0;
  const int bytes = 8 << 20, peer = rank ^ 1;
  char* buffer = malloc((size_t)bytes);
  for (int i = 0; i < 3; ++i) {
    MPI_Request request = MPI_REQUEST_NULL;
    for (int k = 0; k < bytes; k += 4096) buffer[k] = (char)(rank % 2 == 0 ? i + 1 : 0);
    if (peer < size && rank % 2 == 0) MPI_Isend(buffer, bytes, MPI_BYTE, peer, i, MPI_COMM_WORLD, &request);
    if (peer < size && rank % 2 == 1) MPI_Recv(buffer, bytes, MPI_BYTE, peer, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (peer < size) EXPECT(buffer[bytes - 4096] == (char)(i + 1));
  }
#ifdef OPEN_MPI
  /* The other side's memory, through a barrier. MPICH 4.0 writes to rank 0 whatever the target is. */
  MPI_Win window;
  int *shared, mine = rank;
  MPI_Win_allocate(sizeof *shared, sizeof *shared, MPI_INFO_NULL, MPI_COMM_WORLD, &shared, &window);
  *shared = -1;
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock(MPI_LOCK_SHARED, (rank + 1) % size, 0, window);
  MPI_Put(&mine, 1, MPI_INT, (rank + 1) % size, 0, 1, MPI_INT, window);
  MPI_Win_unlock((rank + 1) % size, window);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, window);
  EXPECT(*shared == (rank + size - 1) % size);
  MPI_Win_unlock(rank, window);
  MPI_Win_free(&window);
#endif
  free(buffer);
  return wrong;
}

/* A nonblocking collective progresses while its rank is in other calls of MPI. */
int wait_nonblocking(int rank, int size) {
  int wrong = 0;
  for (int i = 0; i < 20; ++i) {
    int sums[3] = {0, 0, 0}, number = 0, flag = 0;
    int mine[3] = {rank, 2 * rank, 3 * rank};
    MPI_Request requests[4];
    MPI_Iallreduce(&mine[0], &sums[0], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[0]);
    MPI_Ibarrier(MPI_COMM_WORLD, &requests[1]);
    MPI_Iallreduce(&mine[1], &sums[1], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[2]);
    /* All but rank 0 complete first; rank 0 is in a receive until they have. */
    if (rank != 0) {
      MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
      MPI_Send(&rank, 1, MPI_INT, 0, 5, MPI_COMM_WORLD);
    } else {
      for (int k = 1; k < size; ++k) MPI_Recv(&number, 1, MPI_INT, k, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      while (!flag) MPI_Testall(3, requests, &flag, MPI_STATUSES_IGNORE);
    }
    MPI_Iallreduce(&mine[2], &sums[2], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[3]);
    /* A blocking one overtakes it. */
    EXPECT(check_comm(MPI_COMM_WORLD) == 0);
    MPI_Status status;
    MPI_Wait(&requests[3], &status);
    EXPECT(requests[3] == MPI_REQUEST_NULL);
    for (int k = 0; k < 3; ++k) EXPECT(sums[k] == (k + 1) * size * (size - 1) / 2);
  }
  return wrong;
}

/* One rank comes late. */
int wait_late(int rank, int size) {
  int wrong = 0;
  (void)size;
  const struct timespec late = {1, 500000000};
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) nanosleep(&late, NULL);
  MPI_Barrier(MPI_COMM_WORLD);
  EXPECT(check_comm(MPI_COMM_WORLD) == 0);
  return wrong;
}

typedef struct {
  MPI_Comm comm;
  int number, rank, size;
  int wrong;
} Work;

static void* many_calls(void* argument) {
  Work* work = argument;
  for (int i = 0; i < 100; ++i) {
    int mine = work->rank + 1000 * work->number, sum = 0;
    MPI_Barrier(work->comm);
    MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, work->comm);
    work->wrong += sum != work->size * (work->size - 1) / 2 + 1000 * work->number * work->size;
  }
  return NULL;
}

/* Threads, each on a communicator of its own, whose first collectives meet. */
int wait_threads(int rank, int size) {
  int wrong = 0;
  enum { kThreads = 3 };
  pthread_t threads[kThreads];
  Work work[kThreads];
  for (int i = 0; i < kThreads; ++i) {
    work[i].number = i;
    work[i].rank = rank;
    work[i].size = size;
    work[i].wrong = 0;
    MPI_Comm_dup(MPI_COMM_WORLD, &work[i].comm);
  }
  for (int i = 0; i < kThreads; ++i) {
    /* Ranks start them in different orders. */
    pthread_create(&threads[i], NULL, many_calls, &work[(i + rank) % kThreads]);
  }
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  for (int i = 0; i < kThreads; ++i) {
    EXPECT(work[i].wrong == 0);
    MPI_Comm_free(&work[i].comm);
  }
  return wrong;
}

static int call_in_finalize(MPI_Comm comm, int key, void* value, void* state) {
  (void)comm;
  (void)key;
  (void)state;
  const int rank = *(int*)value;
  int sum = 0;
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  printf("rank %d: %d in MPI_Finalize\n", rank, sum);
  fflush(stdout);
  return MPI_SUCCESS;
}

/* A collective in the callback of an attribute that MPI_Finalize deletes. */
int wait_finalize(int rank, int size) {
  static int value;
  int key;
  (void)size;
  value = rank;
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, call_in_finalize, &key, NULL);
  MPI_Comm_set_attr(MPI_COMM_SELF, key, &value);
  return check_comm(MPI_COMM_WORLD);
}
