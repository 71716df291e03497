/* SPDX-License-Identifier: BSD-3-Clause
 * ibcoll inside of another runtime: two processes that know each other by memory they share, and progress while ibcoll
 * waits. Without a launcher: ./host */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { kRanks = 2, kMostBytes = 1 << 20 };

typedef struct {
  pthread_barrier_t barrier;
  char blocks[kRanks * kMostBytes];
} Shared;

typedef struct {
  Shared* shared;
  int rank;
  uint64_t progressed;
} Host;

static int allgather(void* user, const void* send, void* recv, size_t bytes) {
  const Host* const host = user;
  if (bytes > kMostBytes) return 1;
  memcpy(host->shared->blocks + host->rank * bytes, send, bytes);
  pthread_barrier_wait(&host->shared->barrier);
  memcpy(recv, host->shared->blocks, kRanks * bytes);
  pthread_barrier_wait(&host->shared->barrier);
  return 0;
}

static int progress(void* user) { /* of the host's own messages */
  ++((Host*)user)->progressed;
  return 0;
}

static void run(Shared* shared, int rank) {
  Host host = {shared, rank, 0};
  const ibcoll_bootstrap_t bootstrap = {.struct_size = sizeof bootstrap,
                                        .rank = rank,
                                        .size = kRanks,
                                        .allgather = allgather,
                                        .user = &host,
                                        .progress = progress,
                                        .timeout_seconds = 60};
  const ibcoll_context_params_t params = {sizeof params, &bootstrap};
  ibcoll_context_t context;
  CHECK(ibcoll_context_create(&params, &context));
  const ibcoll_collective_args_t args = {.struct_size = sizeof args, .collective = IBCOLL_BARRIER};
  ibcoll_request_t request;
  CHECK(ibcoll_collective_init(ibcoll_team_world(context), &args, &request));
  CHECK(ibcoll_start(request));
  /* The host's loop: one round of progress, then a look at each request. */
  ibcoll_status_t status;
  while ((status = ibcoll_request_status(request)) == IBCOLL_IN_PROGRESS) {
    uint64_t events;
    CHECK(ibcoll_progress_events(context, &events));
  }
  check(status, "ibcoll_request_status");
  CHECK(ibcoll_request_free(request));
  char text[1000];
  EXPECT(ibcoll_context_describe(context, text, sizeof text) == 0); /* nothing is in flight */
  CHECK(ibcoll_context_destroy(context));
}

int main(void) {
  Shared* const shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  EXPECT(shared != MAP_FAILED);
  pthread_barrierattr_t attributes;
  pthread_barrierattr_init(&attributes);
  pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_barrier_init(&shared->barrier, &attributes, kRanks);
  const pid_t other = fork();
  EXPECT(other >= 0);
  run(shared, other == 0);
  if (other == 0) return 0;
  int ended = 1;
  EXPECT(waitpid(other, &ended, 0) == other && ended == 0);
  printf("all right\n");
  return 0;
}
