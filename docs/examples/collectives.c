/* SPDX-License-Identifier: BSD-3-Clause
 * Every blocking collective once. ibcoll_run -n 4 ./collectives */
#include "check.h"

enum { kMost = 64 }; /* ranks */

static void move(ibcoll_team_t team, int rank, int size) {
  int64_t mine = rank, all[kMost], blocks[kMost], got[kMost];
  uint64_t counts[kMost], places[kMost];
  for (int i = 0; i < size; ++i) {
    blocks[i] = 100 * rank + i; /* block i is for rank i */
    counts[i] = sizeof mine;
    places[i] = i * sizeof mine;
  }
  int64_t word = rank == 0 ? 7 : 0;
  CHECK(ibcoll_bcast(team, &word, sizeof word, 0));
  EXPECT(word == 7);
  CHECK(ibcoll_allgather(team, &mine, all, sizeof mine));
  EXPECT(all[size - 1] == size - 1);
  CHECK(ibcoll_allgatherv(team, &mine, all, counts, places));
  EXPECT(all[0] == 0);
  CHECK(ibcoll_alltoall(team, blocks, got, sizeof mine));
  EXPECT(got[size - 1] == 100 * (size - 1) + rank);
  CHECK(ibcoll_alltoallv(team, blocks, counts, places, got, counts, places));
  EXPECT(got[0] == rank);
  /* What only the root needs may be NULL on the others. */
  CHECK(ibcoll_gather(team, &mine, rank == 0 ? all : NULL, sizeof mine, 0));
  CHECK(ibcoll_gatherv(team, &mine, sizeof mine, all, counts, places, 0));
  EXPECT(rank != 0 || all[size - 1] == size - 1);
  CHECK(ibcoll_scatter(team, rank == 0 ? all : NULL, &word, sizeof word, 0));
  EXPECT(word == rank);
  CHECK(ibcoll_scatterv(team, all, counts, places, &word, sizeof word, 0));
  EXPECT(word == rank);
}

static void reduce(ibcoll_team_t team, int rank, int size) {
  const int64_t mine = rank + 1, whole = (int64_t)size * (size + 1) / 2;
  int64_t sum = 0, block = 0, ones[kMost];
  uint64_t counts[kMost];
  for (int i = 0; i < size; ++i) {
    ones[i] = 1;
    counts[i] = sizeof block;
  }
  CHECK(ibcoll_allreduce(team, &mine, &sum, 1, IBCOLL_INT64, IBCOLL_SUM));
  EXPECT(sum == whole);
  CHECK(ibcoll_reduce(team, &mine, &sum, 1, IBCOLL_INT64, IBCOLL_MAX, 0));
  EXPECT(rank != 0 || sum == size);
  CHECK(ibcoll_reduce_scatter(team, ones, &block, counts, IBCOLL_INT64, IBCOLL_SUM));
  EXPECT(block == size);
  CHECK(ibcoll_reduce_scatter_block(team, ones, &block, 1, IBCOLL_INT64, IBCOLL_SUM));
  EXPECT(block == size);
  CHECK(ibcoll_scan(team, &mine, &sum, 1, IBCOLL_INT64, IBCOLL_SUM));
  EXPECT(sum == mine * (mine + 1) / 2);
  CHECK(ibcoll_exscan(team, &mine, &sum, 1, IBCOLL_INT64, IBCOLL_SUM));
  EXPECT(rank == 0 || sum == mine * (mine - 1) / 2);
}

int main(void) {
  ibcoll_context_t context;
  CHECK(ibcoll_context_create(NULL, &context));
  const int rank = ibcoll_context_rank(context), size = ibcoll_context_size(context);
  EXPECT(size <= kMost);
  const ibcoll_team_t team = ibcoll_team_world(context);
  move(team, rank, size);
  reduce(team, rank, size);
  CHECK(ibcoll_barrier(team));
  if (rank == 0) printf("all right\n");
  CHECK(ibcoll_context_destroy(context));
  return 0;
}
