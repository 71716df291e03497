/* SPDX-License-Identifier: BSD-3-Clause
 * A rank dies, the others shrink their team and repeat the step. ibcoll_run -n 4 --keep-going ./survivors */
#include <signal.h>

#include "check.h"

int main(void) {
  ibcoll_context_t context;
  CHECK(ibcoll_context_create(NULL, &context));
  ibcoll_team_t team = ibcoll_team_world(context);
  const int size = ibcoll_team_size(team);

  int one = 1, sum = 0, shrinks = 0;
  for (;;) {
    if (size > 1 && ibcoll_team_size(team) == size && ibcoll_team_rank(team) == size - 1) raise(SIGKILL);
    uint64_t well = ibcoll_allreduce(team, &one, &sum, 1, IBCOLL_INT, IBCOLL_SUM) == IBCOLL_OK;
    if (!well) CHECK(ibcoll_team_revoke(team)); /* others may wait for this rank */

    int failed[64], count = 64;
    CHECK(ibcoll_team_agree(team, &well, failed, &count));
    if (well && count == 0) break;

    int known[64], so_far = 64;
    CHECK(ibcoll_team_failed_ranks(team, known, &so_far));
    EXPECT(count == 1 && failed[0] == size - 1 && so_far == 1 && known[0] == size - 1);
    ibcoll_team_t shrunk;
    CHECK(ibcoll_team_shrink(team, &shrunk));
    if (shrinks++ > 0) CHECK(ibcoll_team_free(team)); /* the first one is the world */
    team = shrunk;
  }
  EXPECT(sum == size - (size > 1));
  if (ibcoll_team_rank(team) == 0) printf("all right\n");
  if (shrinks > 0) CHECK(ibcoll_team_free(team));
  CHECK(ibcoll_context_destroy(context));
  return 0;
}
