// SPDX-License-Identifier: BSD-3-Clause
// Even and odd ranks make a team each, with one id for both, and call on it.
#include <ibcoll.h>

static int gather(void* team, const void* send, void* recv, size_t bytes) {
  return ibcoll_allgather((ibcoll_team_t)team, send, recv, bytes) != IBCOLL_OK;
}

int main(void) {
  ibcoll_context_t context;
  if (ibcoll_context_create(NULL, &context) != IBCOLL_OK) return 1;
  const ibcoll_team_t world = ibcoll_team_world(context);
  const int rank = ibcoll_team_rank(world);
  ibcoll_team_t half, team;
  if (ibcoll_team_split(world, rank % 2, rank, &half) != IBCOLL_OK) return 1;
  const int ranks[] = {rank % 2, rank % 2 + 2};
  const ibcoll_members_t members = {sizeof members, ranks, 2, 7, gather, half};
  if (ibcoll_team_create_by_members(context, &members, &team) != IBCOLL_OK) return 1;
  for (int i = 0; i < 20; ++i)
    if (ibcoll_barrier(team) != IBCOLL_OK) return 1;
  if (ibcoll_team_free(team) != IBCOLL_OK || ibcoll_team_free(half) != IBCOLL_OK) return 1;
  return ibcoll_context_destroy(context) != IBCOLL_OK;
}
