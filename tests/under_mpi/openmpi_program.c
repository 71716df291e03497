/* SPDX-License-Identifier: BSD-3-Clause
 *
 * An MPI program that knows nothing of ibcoll, for test_openmpi.py. Each mode checks what it gets and prints "MODE: ok" on
 * rank 0, or what is wrong on the rank that sees it. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

/* The persistent forms; it needs mpi.h before it. */
#include <mpi-ext.h>

enum { kCount = 5, kMost = 64 };

static int rank, size, wrong;
static MPI_Comm comm;

static void expect(int right, const char* what, int form, int at) {
  if (right) return;
  if (wrong++ < 5) printf("rank %d: %s, form %d: wrong at %d\n", rank, what, form, at);
}

/* Blocking, nonblocking, and persistent, started twice. */
enum { kBlocking, kNonblocking, kPersistent, kForms };
static void finish(int form, MPI_Request* request) {
  if (form == kBlocking) return;
  if (form == kNonblocking) {
    MPI_Wait(request, MPI_STATUS_IGNORE);
    return;
  }
  for (int i = 0; i < 2; ++i) {
    MPI_Start(request);
    MPI_Wait(request, MPI_STATUS_IGNORE);
  }
  MPI_Request_free(request);
}
#define CALL(form, Name, name, ...)                                                    \
  do {                                                                                 \
    MPI_Request request = MPI_REQUEST_NULL;                                            \
    if (form == kBlocking) MPI_##Name(__VA_ARGS__);                                    \
    if (form == kNonblocking) MPI_I##name(__VA_ARGS__, &request);                      \
    if (form == kPersistent) MPIX_##Name##_init(__VA_ARGS__, MPI_INFO_NULL, &request); \
    finish(form, &request);                                                            \
  } while (0)

/* Element i of what `from` sends to `to`. */
static int value(int from, int to, int i) { return 1000000 * from + 1000 * to + i; }

static int send[kMost * kMost], recv[kMost * kMost];
static int counts[kMost], displacements[kMost];

/* Odd ranks describe what they receive as a vector with gaps: the signature is the same, the layout is not. */
static MPI_Datatype gaps;
static int stride(void) { return rank % 2 ? 2 : 1; }
static MPI_Datatype type(void) { return rank % 2 ? gaps : MPI_INT; }

static void fill(void) {
  for (int to = 0; to < size; ++to)
    for (int i = 0; i < kCount; ++i) send[to * kCount + i] = value(rank, to, i);
  memset(recv, 0xff, sizeof recv);
}

static void check_blocks(const char* what, int form, int blocks, int to_me) {
  for (int from = 0; from < blocks; ++from)
    for (int i = 0; i < kCount; ++i) {
      const int at = (from * kCount + i) * stride();
      expect(recv[at] == value(from, to_me ? rank : 0, i), what, form, at);
    }
}

static void data_movement(int form, int root) {
  fill();
  for (int i = 0; i < size; ++i) counts[i] = kCount, displacements[i] = i * kCount;
  CALL(form, Barrier, barrier, comm);
  CALL(form, Allgather, allgather, send, kCount, MPI_INT, recv, kCount, type(), comm);
  check_blocks("allgather", form, size, 0);
  fill();
  CALL(form, Allgatherv, allgatherv, send, kCount, MPI_INT, recv, counts, displacements, type(), comm);
  check_blocks("allgatherv", form, size, 0);
  fill();
  CALL(form, Alltoall, alltoall, send, kCount, MPI_INT, recv, kCount, type(), comm);
  check_blocks("alltoall", form, size, 1);
  fill();
  CALL(form, Alltoallv, alltoallv, send, counts, displacements, MPI_INT, recv, counts, displacements, type(), comm);
  check_blocks("alltoallv", form, size, 1);
  fill();
  MPI_Datatype ints[kMost], types[kMost];
  int from[kMost], to[kMost];
  for (int i = 0; i < size; ++i) {
    ints[i] = MPI_INT, types[i] = type();
    from[i] = (int)sizeof(int) * displacements[i], to[i] = from[i] * stride();
  }
  CALL(form, Alltoallw, alltoallw, send, counts, from, ints, recv, counts, to, types, comm);
  check_blocks("alltoallw", form, size, 1);
  fill();
  CALL(form, Gather, gather, send, kCount, MPI_INT, recv, kCount, type(), root, comm);
  if (rank == root) check_blocks("gather", form, size, 0);
  fill();
  CALL(form, Gatherv, gatherv, send, kCount, MPI_INT, recv, counts, displacements, type(), root, comm);
  if (rank == root) check_blocks("gatherv", form, size, 0);
  fill();
  CALL(form, Scatter, scatter, send, kCount, MPI_INT, recv, kCount, type(), root, comm);
  for (int i = 0; i < kCount; ++i) expect(recv[i * stride()] == value(root, rank, i), "scatter", form, i);
  fill();
  CALL(form, Scatterv, scatterv, send, counts, displacements, MPI_INT, recv, kCount, type(), root, comm);
  for (int i = 0; i < kCount; ++i) expect(recv[i * stride()] == value(root, rank, i), "scatterv", form, i);
  fill();
  if (rank == root)
    for (int i = 0; i < kCount; ++i) recv[i * stride()] = value(root, 0, i);
  CALL(form, Bcast, bcast, recv, kCount, type(), root, comm);
  for (int i = 0; i < kCount; ++i) expect(recv[i * stride()] == value(root, 0, i), "bcast", form, i);
}

/* The sum over ranks [0, upto) of element i of what they send to `to`. */
static int sum(int upto, int to, int i) {
  int total = 0;
  for (int from = 0; from < upto; ++from) total += value(from, to, i);
  return total;
}

static void check_sum(const char* what, int form, int upto, int to) {
  for (int i = 0; i < kCount; ++i) expect(recv[i] == sum(upto, to, i), what, form, i);
}

static void reductions(int form, int root) {
  fill();
  for (int i = 0; i < size; ++i) counts[i] = kCount;
  CALL(form, Allreduce, allreduce, send, recv, kCount, MPI_INT, MPI_SUM, comm);
  check_sum("allreduce", form, size, 0);
  fill();
  CALL(form, Reduce, reduce, send, recv, kCount, MPI_INT, MPI_SUM, root, comm);
  if (rank == root) check_sum("reduce", form, size, 0);
  fill();
  CALL(form, Reduce_scatter, reduce_scatter, send, recv, counts, MPI_INT, MPI_SUM, comm);
  check_sum("reduce_scatter", form, size, rank);
  fill();
  CALL(form, Reduce_scatter_block, reduce_scatter_block, send, recv, kCount, MPI_INT, MPI_SUM, comm);
  check_sum("reduce_scatter_block", form, size, rank);
  fill();
  CALL(form, Scan, scan, send, recv, kCount, MPI_INT, MPI_SUM, comm);
  check_sum("scan", form, rank + 1, 0);
  fill();
  CALL(form, Exscan, exscan, send, recv, kCount, MPI_INT, MPI_SUM, comm);
  if (rank > 0) check_sum("exscan", form, rank, 0);
}

static void forms(void) {
  for (int form = 0; form < kForms; ++form)
    for (int root = 0; root<size; root += size> 1 ? size - 1 : 1) {
      data_movement(form, root);
      reductions(form, root);
    }
}

/* Types, operations and communicators that the program frees while a request uses them. */
static void add(void* in, void* inout, int* count, MPI_Datatype* of) {
  (void)of;
  for (int i = 0; i < *count; ++i) ((int*)inout)[i] += ((int*)in)[i];
}

static void lifetimes(void) {
  for (int round = 0; round < 50; ++round) {
    MPI_Comm mine;
    MPI_Comm_dup(comm, &mine);
    MPI_Barrier(mine);
    MPI_Datatype pair;
    MPI_Type_vector(kCount, 1, 2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    MPI_Op op;
    MPI_Op_create(add, 1, &op);
    fill();
    int total[kCount] = {0};
    int spread[2 * kCount];
    for (int i = 0; i < 2 * kCount; ++i) spread[i] = rank == 0 ? round + i : -1;
    MPI_Request requests[2];
    MPI_Iallreduce(send, total, kCount, MPI_INT, op, mine, &requests[0]);
    MPI_Ibcast(spread, 1, pair, 0, mine, &requests[1]);
    MPI_Type_free(&pair);
    MPI_Op_free(&op);
    MPI_Comm_free(&mine);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < kCount; ++i) {
      expect(total[i] == sum(size, 0, i), "allreduce of freed objects", round, i);
      expect(spread[2 * i] == round + 2 * i, "bcast of freed objects", round, i);
    }
  }
}

/* Many nonblocking collectives at a time, completed in another order; MPI_Comm_idup beside them. */
static void in_flight(void) {
  enum { kRequests = 40 };
  static int totals[kRequests], mine[kRequests];
  MPI_Request requests[kRequests];
  for (int round = 0; round < 20; ++round) {
    MPI_Comm copy;
    MPI_Request copied;
    MPI_Comm_idup(comm, &copy, &copied);
    for (int i = 0; i < kRequests; ++i) {
      mine[i] = rank + i;
      MPI_Iallreduce(&mine[i], &totals[i], 1, MPI_INT, MPI_SUM, comm, &requests[i]);
    }
    int done = 0;
    while (!done) MPI_Test(&requests[kRequests - 1], &done, MPI_STATUS_IGNORE);
    MPI_Barrier(comm);
    MPI_Wait(&copied, MPI_STATUS_IGNORE);
    MPI_Barrier(copy);
    MPI_Waitall(kRequests, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < kRequests; ++i)
      expect(totals[i] == size * (size - 1) / 2 + size * i, "iallreduce in flight", round, i);
    MPI_Comm_free(&copy);
  }
}

/* Processes of another job: ibcoll runs the collectives of each job, and Open MPI those of both. */
static char* program;
static void spawn(void) {
  MPI_Comm children, both;
  char* words[] = {"spawned", NULL};
  MPI_Comm_get_parent(&children);
  const int parent = children == MPI_COMM_NULL;
  if (parent) MPI_Comm_spawn(program, words, 2, MPI_INFO_NULL, 0, comm, &children, MPI_ERRCODES_IGNORE);
  MPI_Intercomm_merge(children, !parent, &both);
  int of = 0, one = 1, total = 0;
  MPI_Comm_size(both, &of);
  MPI_Allreduce(&one, &total, 1, MPI_INT, MPI_SUM, both);
  expect(total == of && of > size, "allreduce of two jobs", of, total);
  MPI_Allreduce(&one, &total, 1, MPI_INT, MPI_SUM, comm);
  expect(total == size, "allreduce of one of two jobs", size, total);
  int from = parent ? 7 : 0;
  MPI_Bcast(&from, 1, MPI_INT, parent ? (rank == 0 ? MPI_ROOT : MPI_PROC_NULL) : 0, children);
  expect(from == 7, "bcast to the other job", 0, from);
  MPI_Comm_free(&both);
  MPI_Comm_disconnect(&children);
}

int main(int argc, char** argv) {
  static const struct {
    const char* name;
    void (*run)(void);
  } modes[] = {
      {"forms", forms}, {"lifetimes", lifetimes}, {"in_flight", in_flight}, {"spawn", spawn}, {"spawned", spawn}};
  program = argv[0];
  MPI_Init(&argc, &argv);
  comm = MPI_COMM_WORLD;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &gaps);
  MPI_Type_commit(&gaps);
  MPI_Barrier(comm);
  int known = 0;
  for (int i = 1; i < argc; ++i)
    for (size_t m = 0; m < sizeof modes / sizeof *modes; ++m)
      if (strcmp(argv[i], modes[m].name) == 0) {
        const int before = wrong;
        int all = 0;
        modes[m].run();
        const int found = wrong - before;
        MPI_Allreduce(&found, &all, 1, MPI_INT, MPI_SUM, comm);
        if (rank == 0 && all == 0 && strcmp(argv[i], "spawned") != 0) printf("%s: ok\n", modes[m].name);
        ++known;
      }
  MPI_Type_free(&gaps);
  MPI_Finalize();
  return wrong != 0 || known != argc - 1;
}
