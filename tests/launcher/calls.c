/* SPDX-License-Identifier: BSD-3-Clause */
/* A rank of the tests: `ibcoll_launcher_calls barriers` calls barriers until it is ended, `ibcoll_launcher_calls sum` adds the
   numbers of all ranks and checks the sum. */
#include <ibcoll.h>
#include <stdio.h>
#include <string.h>

static int failed(void) {
  fprintf(stderr, "%s\n", ibcoll_last_error());
  return 1;
}

int main(int argc, char** argv) {
  ibcoll_context_t context;
  if (argc != 2 || ibcoll_context_create(NULL, &context) != IBCOLL_OK) return failed();
  const ibcoll_team_t world = ibcoll_team_world(context);
  while (strcmp(argv[1], "barriers") == 0)
    if (ibcoll_barrier(world) != IBCOLL_OK) return failed();
  const long long rank = ibcoll_context_rank(context), size = ibcoll_context_size(context);
  long long sum = 0;
  if (ibcoll_allreduce(world, &rank, &sum, 1, IBCOLL_INT64, IBCOLL_SUM) != IBCOLL_OK) return failed();
  if (ibcoll_context_destroy(context) != IBCOLL_OK) return failed();
  return sum != size * (size - 1) / 2;
}
