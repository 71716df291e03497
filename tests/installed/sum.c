/* SPDX-License-Identifier: BSD-3-Clause */
#include <ibcoll.h>
#include <stdio.h>

int main(void) {
  ibcoll_context_t context;
  if (ibcoll_context_create(NULL, &context) != IBCOLL_OK) return puts(ibcoll_last_error()), 1;
  long long mine = ibcoll_context_rank(context) + 1, sum = 0;
  if (ibcoll_allreduce(ibcoll_team_world(context), &mine, &sum, 1, IBCOLL_INT64, IBCOLL_SUM) != IBCOLL_OK)
    return puts(ibcoll_last_error()), 1;
  printf("rank %d of %d: sum %lld\n", ibcoll_context_rank(context), ibcoll_context_size(context), sum);
  return ibcoll_context_destroy(context) != IBCOLL_OK;
}
