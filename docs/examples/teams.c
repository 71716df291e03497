/* SPDX-License-Identifier: BSD-3-Clause
 * Groups of ranks: by color, by a list, and by their members alone. ibcoll_run -n 4 ./teams */
#include "check.h"

/* The exchange among members that ibcoll_team_create_by_members asks for; here by a team that they have already. */
static int exchange(void* team, const void* send, void* recv, size_t bytes) {
  return ibcoll_allgather(team, send, recv, bytes) == IBCOLL_OK ? 0 : 1;
}

int main(void) {
  ibcoll_context_t context;
  CHECK(ibcoll_context_create(NULL, &context));
  const ibcoll_team_t world = ibcoll_team_world(context);
  const int rank = ibcoll_context_rank(context), size = ibcoll_context_size(context);

  ibcoll_team_t half;
  CHECK(ibcoll_team_split(world, rank % 2, rank, &half));
  EXPECT(ibcoll_team_rank(half) == rank / 2 && ibcoll_team_size(half) == (size + 1 - rank % 2) / 2);

  const int first[] = {0};
  ibcoll_team_t alone;
  CHECK(ibcoll_team_create(world, first, 1, &alone));
  EXPECT((alone != NULL) == (rank == 0)); /* NULL on ranks that are not in it */

  int ranks[64], count = 0;
  for (int member = rank % 2; member < size && count < 64; member += 2) ranks[count++] = member;
  const ibcoll_members_t members = {
      .struct_size = sizeof members, .ranks = ranks, .count = count, .id = 1, .allgather = exchange, .user = half};
  ibcoll_team_t same;
  CHECK(ibcoll_team_create_by_members(context, &members, &same));

  int one = 1, sum = 0;
  CHECK(ibcoll_allreduce(same, &one, &sum, 1, IBCOLL_INT, IBCOLL_SUM));
  EXPECT(sum == count);

  /* A runtime that refuses the arguments of one rank ends the call of all. */
  CHECK(ibcoll_barrier(world));
  if (ibcoll_team_rank(same) == 0) CHECK(ibcoll_team_abort(same, "an example refuses its next call"));
  EXPECT(ibcoll_barrier(same) == IBCOLL_ERR_MISMATCH);
  EXPECT(ibcoll_team_last_ended(same) >= 0);

  CHECK(ibcoll_team_free(same));
  CHECK(ibcoll_team_free(alone));
  CHECK(ibcoll_team_free(half));
  if (rank == 0) printf("all right\n");
  CHECK(ibcoll_context_destroy(context));
  return 0;
}
