/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The shortest job: joins, waits once for all ranks, leaves. perf/measure takes the time of it from outside. */
#include <stdio.h>

#include "ibcoll.h"

static int failed(const char* what) {
  fprintf(stderr, "ibcoll_first_barrier: %s: %s\n", what, ibcoll_last_error());
  return 1;
}

int main(void) {
  ibcoll_context_t context = NULL;
  if (ibcoll_context_create(NULL, &context) != IBCOLL_OK) return failed("ibcoll_context_create");
  if (ibcoll_barrier(ibcoll_team_world(context)) != IBCOLL_OK) return failed("ibcoll_barrier");
  if (ibcoll_context_destroy(context) != IBCOLL_OK) return failed("ibcoll_context_destroy");
  return 0;
}
