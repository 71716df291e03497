/* SPDX-License-Identifier: BSD-3-Clause */
/* A rank of the tests: `ibcoll_launcher_calls barriers` calls barriers until it is ended, `ibcoll_launcher_calls sum` adds the
   numbers of all ranks and checks the sum, `ibcoll_launcher_calls copy LIBRARY` creates a second context in a copy of the library. */
#include <dlfcn.h>
#include <ibcoll.h>
#include <stdio.h>
#include <string.h>

static int failed(void) {
  fprintf(stderr, "%s\n", ibcoll_last_error());
  return 1;
}

static int create_in_copy(const char* library) {
  void* const copy = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (!copy) return puts(dlerror()), 1;
  ibcoll_status_t (*create)(const ibcoll_context_params_t*, ibcoll_context_t*);
  const char* (*last_error)(void);
  *(void**)&create = dlsym(copy, "ibcoll_context_create");
  *(void**)&last_error = dlsym(copy, "ibcoll_last_error");
  ibcoll_context_t context;
  const ibcoll_status_t status = create(NULL, &context);
  puts(status == IBCOLL_OK ? "created" : last_error());
  return 0;
}

int main(int argc, char** argv) {
  ibcoll_context_t context;
  if (argc < 2 || ibcoll_context_create(NULL, &context) != IBCOLL_OK) return failed();
  const ibcoll_team_t world = ibcoll_team_world(context);
  while (strcmp(argv[1], "barriers") == 0)
    if (ibcoll_barrier(world) != IBCOLL_OK) return failed();
  if (strcmp(argv[1], "copy") == 0 && create_in_copy(argv[2]) != 0) return 1;
  const long long rank = ibcoll_context_rank(context), size = ibcoll_context_size(context);
  long long sum = 0;
  if (ibcoll_allreduce(world, &rank, &sum, 1, IBCOLL_INT64, IBCOLL_SUM) != IBCOLL_OK) return failed();
  if (ibcoll_context_destroy(context) != IBCOLL_OK) return failed();
  return sum != size * (size - 1) / 2;
}
