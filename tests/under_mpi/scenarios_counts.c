/* SPDX-License-Identifier: BSD-3-Clause
 * Counts that do not match. Each call ends soon, with success or an error, while the ranks whose part was complete wait
 * outside of collectives. */
#include <mpi.h>
#include <stdlib.h>
#ifdef OPEN_MPI
#include <mpi-ext.h>
#define INIT(NAME) MPIX_##NAME##_init
#else
#define INIT(NAME) MPI_##NAME##_init
#endif

#include "tests/under_mpi/scenarios.h"

enum {
  kGather,
  kGatherv,
  kScatter,
  kScatterv,
  kAllgather,
  kAllgatherv,
  kAlltoall,
  kAlltoallv,
  kAlltoallw,
  kBcast,
  kReduce,
  kAllreduce,
  kReduceScatter,
  kReduceScatterBlock,
  kScan,
  kExscan,
  kCollectives
};
static const char* const kNames[] = {
    "gather",    "gatherv", "scatter", "scatterv",  "allgather",      "allgatherv",           "alltoall", "alltoallv",
    "alltoallw", "bcast",   "reduce",  "allreduce", "reduce_scatter", "reduce_scatter_block", "scan",     "exscan"};
enum { kBlocking, kNonblocking, kPersistent, kForms };
static const char* const kFormNames[] = {"", "nonblocking ", "persistent "};
/* Whose blocks are odd: those that one rank sends (in scatters: gets), each rank's own, or all. */
enum { kRoot, kLast, kOwn, kEvery, kOdds };
static const char* const kOddNames[] = {"the root's blocks", "the last rank's blocks", "own blocks", "all blocks"};
enum { kRanks = 8, kMost = 70000 }; /* ints in a block at most */
enum { kPatience = 5 };             /* times what is promised, for a machine with other work */

typedef struct {
  int collective, form, odd, sent, offered; /* ints in an odd block; all others have `offered` */
} Case;

static int scatters(const Case* it) { return it->collective == kScatter || it->collective == kScatterv; }
static int gathers(const Case* it) { return it->collective == kGather || it->collective == kGatherv; }
static int gathers_to_all(const Case* it) { return it->collective == kAllgather || it->collective == kAllgatherv; }

static int is_odd(const Case* it, int from, int to, int size) {
  const int of = scatters(it) ? to : from;
  return it->odd == kRoot   ? of == 0
         : it->odd == kLast ? of == size - 1
         : it->odd == kOwn  ? from == to || it->collective == kAlltoall || gathers_to_all(it)
                            : 1;
}
static int sent(const Case* it, int from, int to, int size) {
  return is_odd(it, from, to, size) ? it->sent : it->offered;
}

static int sendbuf[kRanks * kMost], recvbuf[kRanks * kMost];

#define CALL(NAME, INAME, ...)                                          \
  (it->form == kBlocking      ? MPI_##NAME(__VA_ARGS__, comm)           \
   : it->form == kNonblocking ? MPI_##INAME(__VA_ARGS__, comm, request) \
                              : INIT(NAME)(__VA_ARGS__, comm, MPI_INFO_NULL, request))

static int call(const Case* it, MPI_Comm comm, int rank, int size, MPI_Request* request) {
  const int own = sent(it, rank, gathers(it) ? 0 : rank, size), offered = it->offered;
  const int all = it->odd == kOwn ? offered : own;
  static int sends[kRanks], receives[kRanks], at[kRanks], bytes_at[kRanks];
  static MPI_Datatype types[kRanks];
  for (int i = 0; i < size; ++i) {
    sends[i] = sent(it, rank, i, size);
    receives[i] = offered;
    at[i] = i * kMost;
    bytes_at[i] = 4 * at[i];
    types[i] = MPI_INT;
  }
  switch (it->collective) {
    case kGather:
      return CALL(Gather, Igather, sendbuf, own, MPI_INT, recvbuf, offered, MPI_INT, 0);
    case kGatherv:
      return CALL(Gatherv, Igatherv, sendbuf, own, MPI_INT, recvbuf, receives, at, MPI_INT, 0);
    case kScatter: /* sends blocks of one size */
      return CALL(Scatter, Iscatter, sendbuf, it->sent, MPI_INT, recvbuf,
                  is_odd(it, 0, rank, size) ? offered : it->sent, MPI_INT, 0);
    case kScatterv:
      return CALL(Scatterv, Iscatterv, sendbuf, sends, at, MPI_INT, recvbuf, offered, MPI_INT, 0);
    case kAllgather:
      return CALL(Allgather, Iallgather, sendbuf, own, MPI_INT, recvbuf, offered, MPI_INT);
    case kAllgatherv:
      return CALL(Allgatherv, Iallgatherv, sendbuf, own, MPI_INT, recvbuf, receives, at, MPI_INT);
    case kAlltoall:
      return CALL(Alltoall, Ialltoall, sendbuf, own, MPI_INT, recvbuf, offered, MPI_INT);
    case kAlltoallv:
      return CALL(Alltoallv, Ialltoallv, sendbuf, sends, at, MPI_INT, recvbuf, receives, at, MPI_INT);
    case kAlltoallw:
      return CALL(Alltoallw, Ialltoallw, sendbuf, sends, bytes_at, types, recvbuf, receives, bytes_at, types);
    case kBcast:
      return CALL(Bcast, Ibcast, recvbuf, all, MPI_INT, 0);
    case kReduce:
      return CALL(Reduce, Ireduce, sendbuf, recvbuf, all, MPI_INT, MPI_SUM, 0);
    case kAllreduce:
      return CALL(Allreduce, Iallreduce, sendbuf, recvbuf, all, MPI_INT, MPI_SUM);
    case kReduceScatter:
      for (int i = 0; i < size; ++i) receives[i] = all;
      return CALL(Reduce_scatter, Ireduce_scatter, sendbuf, recvbuf, receives, MPI_INT, MPI_SUM);
    case kReduceScatterBlock:
      return CALL(Reduce_scatter_block, Ireduce_scatter_block, sendbuf, recvbuf, all, MPI_INT, MPI_SUM);
    case kScan:
      return CALL(Scan, Iscan, sendbuf, recvbuf, all, MPI_INT, MPI_SUM);
    default:
      return CALL(Exscan, Iexscan, sendbuf, recvbuf, all, MPI_INT, MPI_SUM);
  }
}

/* The class of the call's error. */
static int run(const Case* it, MPI_Comm comm, int rank, int size) {
  MPI_Request request = MPI_REQUEST_NULL;
  int class = MPI_SUCCESS, code = call(it, comm, rank, size, &request);
  if (code == MPI_SUCCESS && it->form == kPersistent) code = MPI_Start(&request);
  if (code == MPI_SUCCESS && it->form != kBlocking) code = MPI_Wait(&request, MPI_STATUS_IGNORE);
  if (it->form == kPersistent && request != MPI_REQUEST_NULL) MPI_Request_free(&request);
  if (code != MPI_SUCCESS) MPI_Error_class(code, &class);
  return class;
}

/* One rank, or all alike, can do what plain MPIs do: move what was sent where that is fewer than is offered. */
static int is_taken(const Case* it) {
  if (it->sent > it->offered) return 0;
  if (gathers_to_all(it)) return 1;
  if (it->collective == kAlltoall) return it->odd >= kOwn;
  if (gathers(it) || scatters(it)) return it->odd == kRoot || it->odd == kOwn;
  return it->odd == kOwn && it->collective <= kAlltoallw;
}

/* Where there is nothing to move, some ranks may be content and others return before they call. */
static int may_pass(const Case* it) { return it->sent == 0 || it->offered == 0; }

/* With a component, Open MPI itself returns from calls with nothing to send, and refuses own blocks of two sizes, on
 * that rank alone. The others wait for it, as without the component. */
static int is_left_to_open_mpi(const Case* it) {
  if (!getenv("COMPONENT")) return 0;
  return may_pass(it) || (it->collective >= kAlltoall && it->collective <= kAlltoallw);
}

static int agrees(const Case* it) { return it->collective >= kBcast && it->odd >= kOwn; }

static int moved_what_was_sent(const Case* it, int rank, int size) {
  const int stride =
      it->collective == kGather || it->collective == kAllgather || it->collective == kAlltoall ? it->offered : kMost;
  if (gathers(it) && rank != 0) return 1;
  for (int from = 0; from < (scatters(it) ? 1 : size); ++from)
    for (int i = 0; i < (it->collective == kScatter ? it->sent : sent(it, from, rank, size)); ++i)
      if (recvbuf[from * stride + i] != 1000 + from) return 0;
  return 1;
}

/* Rank 0 gets what the others saw, wherever they are by then; they wait for it meanwhile. */
static int worst_of_all(int class, int rank, int size) {
  int worst = class;
  for (int other = 1; other < size; ++other) {
    int theirs = 0;
    if (rank == 0) MPI_Recv(&theirs, 1, MPI_INT, other, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == other) MPI_Send(&class, 1, MPI_INT, 0, 5, MPI_COMM_WORLD);
    if (theirs != MPI_SUCCESS) worst = theirs;
  }
  for (int other = 1; other < size; ++other) {
    if (rank == 0) MPI_Send(&worst, 1, MPI_INT, other, 6, MPI_COMM_WORLD);
    if (rank == other) MPI_Recv(&worst, 1, MPI_INT, 0, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  return worst;
}

static int check(const Case* it, int rank, int size) {
  int wrong = 0;
  char what[200];
  snprintf(what, sizeof what, "%s%s, %s: %d sent, %d offered", kFormNames[it->form], kNames[it->collective],
           kOddNames[it->odd], it->sent, it->offered);
  if (getenv("VERBOSE") && rank == 0) fprintf(stderr, "%s\n", what);
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  wrong += check_comm(comm);
  for (int i = 0; i < kRanks * kMost; ++i) sendbuf[i] = 1000 + rank, recvbuf[i] = -1;
  const double begin = MPI_Wtime();
  const int class = run(it, comm, rank, size);
  const double took = MPI_Wtime() - begin;
  const int worst = worst_of_all(class, rank, size);
  EXPECT(class == MPI_SUCCESS || class == MPI_ERR_TRUNCATE);
  EXPECT(took < 2 * kPatience);
  if (!may_pass(it)) EXPECT(worst == (is_taken(it) || agrees(it) ? MPI_SUCCESS : MPI_ERR_TRUNCATE));
  if (is_taken(it)) EXPECT(moved_what_was_sent(it, rank, size));
  /* The communicator is as good as before, at once. What no rank of the call could see, the next one may report. */
  const int next = MPI_Barrier(comm);
  EXPECT(next == MPI_SUCCESS || (may_pass(it) && class == MPI_SUCCESS && next == MPI_ERR_TRUNCATE));
  EXPECT(check_comm(comm) == 0);
  MPI_Comm_free(&comm);
  if (wrong) printf("rank %d: wrong in %s (class %d, worst %d, %.2f s)\n", rank, what, class, worst, took);
  return wrong;
}

/* PART of PARTS of all cases. */
int counts(int rank, int size) {
  static const int kSizes[][2] = {{2, 5},     {5, 2},     {0, 3},         {3, 0},
                                  {2, 60000}, {60000, 2}, {40000, 60000}, {60000, 40000}};
  const int part = atoi(getenv("PART")), parts = atoi(getenv("PARTS"));
  int wrong = 0, number = 0;
  for (int form = 0; form < kForms; ++form)
    for (int odd = 0; odd < kOdds; ++odd)
      for (size_t i = 0; i < sizeof kSizes / sizeof *kSizes; ++i)
        for (int collective = 0; collective < kCollectives; ++collective) {
          const Case it = {collective, form, odd, kSizes[i][0], kSizes[i][1]};
          if (number++ % parts == part && !is_left_to_open_mpi(&it)) wrong += check(&it, rank, size);
        }
  return wrong;
}

/* A call that the MPI refuses on rank 0 alone. MPICH of Debian refuses equal buffers only. */
static int refused_call(int which, MPI_Comm comm, int rank, int size) {
  int* const own = rank == 0 ? recvbuf : sendbuf;
  const int count = rank == 0 ? -1 : 4;
  (void)size;
#ifdef OPEN_MPI
  MPI_Request request = MPI_REQUEST_NULL;
  int code;
  switch (which) {
    case 0:
      return MPI_Bcast(own, count, MPI_INT, 1, comm);
    case 1:
      return MPI_Reduce(sendbuf, recvbuf, 4, rank == 0 ? MPI_DATATYPE_NULL : MPI_INT, MPI_SUM, 1, comm);
    case 2:
      code = MPI_Iallgather(sendbuf, count, MPI_INT, recvbuf, 4, MPI_INT, comm, &request);
      return code != MPI_SUCCESS ? code : MPI_Wait(&request, MPI_STATUS_IGNORE);
    default:
      code = INIT(Bcast)(own, count, MPI_INT, 0, comm, MPI_INFO_NULL, &request);
      if (code == MPI_SUCCESS) MPI_Request_free(&request);
      return code;
  }
#else
  (void)count;
  switch (which) {
    case 0:
      return MPI_Gather(own, 4, MPI_INT, recvbuf, 4, MPI_INT, 0, comm);
    case 1:
      return MPI_Reduce(own, recvbuf, 4, MPI_INT, MPI_SUM, 0, comm);
    case 2:
      return MPI_Scatter(own, 4, MPI_INT, recvbuf, 4, MPI_INT, 0, comm);
    default:
      return MPI_Allreduce(own, recvbuf, 4, MPI_INT, MPI_SUM, comm);
  }
#endif
}

int counts_refused(int rank, int size) {
  int wrong = 0;
  for (int which = 0; which < 4; ++which)
    for (int again = 0; again < 2; ++again) { /* the first one in a row, and the second */
      MPI_Comm comm;
      MPI_Comm_dup(MPI_COMM_WORLD, &comm);
      MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
      EXPECT(check_comm(comm) == 0);
      for (int times = 0; times <= again; ++times) {
        const int code = refused_call(which, comm, rank, size);
        if (rank == 0) EXPECT(code != MPI_SUCCESS);
        if (!again) worst_of_all(code, rank, size);
      }
      EXPECT(MPI_Barrier(comm) == MPI_SUCCESS);
      EXPECT(check_comm(comm) == 0);
      MPI_Comm_free(&comm);
    }
  return wrong;
}
