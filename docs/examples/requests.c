/* SPDX-License-Identifier: BSD-3-Clause
 * One request that is started many times, and one that runs once, while the rank computes. ibcoll_run -n 4 ./requests */
#include "check.h"

enum { kNumbers = 1000 };

int main(void) {
  ibcoll_context_t context;
  CHECK(ibcoll_context_create(NULL, &context));
  const ibcoll_team_t world = ibcoll_team_world(context);
  double* const numbers = ibcoll_mem_alloc(context, 2 * kNumbers * sizeof(double));
  EXPECT(numbers != NULL);
  double* const sums = numbers + kNumbers;

  const ibcoll_collective_args_t args = {.struct_size = sizeof args,
                                         .collective = IBCOLL_ALLREDUCE,
                                         .send = numbers,
                                         .recv = sums,
                                         .count = kNumbers,
                                         .type = IBCOLL_DOUBLE,
                                         .op = IBCOLL_SUM};
  ibcoll_request_t request;
  CHECK(ibcoll_collective_init(world, &args, &request));
  for (int step = 0; step < 10; ++step) {
    for (int i = 0; i < kNumbers; ++i) numbers[i] = step;
    CHECK(ibcoll_start(request));
    CHECK(ibcoll_progress(context)); /* now and then while this rank computes */
    if (step % 2 == 0) {
      CHECK(ibcoll_wait(request));
    } else {
      ibcoll_status_t status;
      while ((status = ibcoll_wait_timeout(request, 0.001)) == IBCOLL_ERR_TIMEOUT) continue;
      check(status, "ibcoll_wait_timeout");
    }
    EXPECT(sums[kNumbers - 1] == (double)step * ibcoll_context_size(context));
  }
  CHECK(ibcoll_request_status(request));
  if (ibcoll_context_rank(context) == 0) printf("ran as %s\n", ibcoll_request_algorithm(request));
  CHECK(ibcoll_request_free(request));

  CHECK(ibcoll_collective_start(world, &args, &request));
  ibcoll_status_t status;
  while ((status = ibcoll_test(request)) == IBCOLL_IN_PROGRESS) continue; /* compute */
  check(status, "ibcoll_test");                                           /* OK has freed the request */

  CHECK(ibcoll_mem_free(context, numbers));
  CHECK(ibcoll_context_destroy(context));
  return 0;
}
