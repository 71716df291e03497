/* SPDX-License-Identifier: BSD-3-Clause
 * Five steps of a program whose rank 2 has more to compute than the others. */
#include <ibcoll.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

enum { kBytes = 40000, kRanks = 8 };

static void compute(int rank, int step) { usleep(3000 + 700 * ((rank * 5 + step * 3) % 4) + (rank == 2 ? 4000 : 0)); }

static ibcoll_status_t run(ibcoll_team_t team, int rank) {
  static char mine[kRanks * kBytes], others[kRanks * kBytes];
  ibcoll_status_t status = IBCOLL_OK;
  for (int step = 0; step < 5 && status == IBCOLL_OK; ++step) {
    compute(rank, step);
    if ((status = ibcoll_alltoall(team, mine, others, kBytes)) != IBCOLL_OK) break;
    compute(rank, step + 1);
    int64_t change = rank, greatest;
    status = ibcoll_allreduce(team, &change, &greatest, 1, IBCOLL_INT64, IBCOLL_MAX);
  }
  return status;
}

int main(void) {
  ibcoll_context_t job;
  if (ibcoll_context_create(NULL, &job) != IBCOLL_OK) return 1;
  if (ibcoll_context_size(job) != kRanks) return 2;
  const ibcoll_status_t status = run(ibcoll_team_world(job), ibcoll_context_rank(job));
  return ibcoll_context_destroy(job) != IBCOLL_OK || status != IBCOLL_OK;
}
