// SPDX-License-Identifier: BSD-3-Clause
// Calls from several functions. The cases know each by its comment: the function that calls, and a name.
#include <ibcoll.h>
#include <stdlib.h>

#if defined(BINDING)
// A stand-in for mpi4py: it calls an MPI for lines of Python.
ibcoll_status_t mpi_layer(ibcoll_team_t team);
static ibcoll_context_t binding_context;

void binding_begin(void) {
  if (ibcoll_context_create(NULL, &binding_context) != IBCOLL_OK) abort();
}

void binding_barrier(void) {
  if (mpi_layer(ibcoll_team_world(binding_context)) != IBCOLL_OK) abort();
}

void binding_end(void) {
  if (ibcoll_context_destroy(binding_context) != IBCOLL_OK) abort();
}
#elif defined(LAYER)
ibcoll_status_t LAYER(ibcoll_team_t team) {
  const ibcoll_status_t status = ibcoll_barrier(team);  // own_layer: library
  return status == IBCOLL_OK ? IBCOLL_OK : status;
}
#else
ibcoll_status_t own_layer(ibcoll_team_t team);
ibcoll_status_t mpi_layer(ibcoll_team_t team);

static int number;

__attribute__((always_inline)) static inline void sum(ibcoll_team_t team) {
  ibcoll_allreduce(team, IBCOLL_IN_PLACE, &number, 1, IBCOLL_INT32, IBCOLL_SUM);  // sum: inlined
}

__attribute__((noinline)) static void send(ibcoll_team_t team) {
  const ibcoll_collective_args_t args = {
      .struct_size = sizeof args, .collective = IBCOLL_BCAST, .recv = &number, .bytes = sizeof number};
  ibcoll_request_t request;
  ibcoll_collective_start(team, &args, &request);  // send: nonblocking
  ibcoll_wait(request);
  ibcoll_collective_init(team, &args, &request);
  for (int i = 0; i < 3; ++i) {
    ibcoll_start(request);  // send: persistent
    ibcoll_wait(request);
  }
  ibcoll_request_free(request);
}

int main(void) {
  ibcoll_context_t context;
  if (ibcoll_context_create(NULL, &context) != IBCOLL_OK) return 1;
  ibcoll_team_t team = ibcoll_team_world(context);
  sum(team);
  send(team);
  // clang-format off
  ibcoll_barrier(team); ibcoll_barrier(team);  // main: twice
  // clang-format on
  own_layer(team);
  mpi_layer(team);  // main: layer
  return ibcoll_context_destroy(context) != IBCOLL_OK;
}
#endif
