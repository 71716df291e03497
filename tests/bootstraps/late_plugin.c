/* SPDX-License-Identifier: BSD-3-Clause
 * A plugin that uses ibcoll until the process ends. late_program.c loads it, and says when it uses ibcoll last. */
#include <ibcoll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/bootstraps/late_program.h"

static ibcoll_context_t context;
static int by_destructor, too_late, ends_after_ucx;
static atomic_int going;

/* Not the streams of stdio, which may be closed by then. */
static void say(const char* text) {
  if (write(STDERR_FILENO, text, strlen(text)) < 0) _exit(4);
}

static void expect(int right, const char* what) {
  if (right) return;
  say(what);
  say(": ");
  say(ibcoll_last_error());
  say("\n");
  _exit(3);
}

/* Calls of all kinds: data of several sizes, teams, errors with a text, what the library says of itself. */
static void use(void) {
  ibcoll_team_t world = ibcoll_team_world(context), half;
  const int rank = ibcoll_team_rank(world), size = ibcoll_team_size(world);
  for (uint64_t count = 1; count <= 100000; count *= 100) {
    int* values = malloc(2 * count * sizeof(int));
    for (uint64_t i = 0; i < count; ++i) values[i] = rank;
    expect(ibcoll_allreduce(world, values, values + count, count, IBCOLL_INT, IBCOLL_SUM) == IBCOLL_OK, "allreduce");
    expect(values[count] == size * (size - 1) / 2 && values[2 * count - 1] == values[count], "a sum is wrong");
    free(values);
  }
  expect(ibcoll_team_split(world, rank % 2, rank, &half) == IBCOLL_OK, "split");
  expect(ibcoll_barrier(half) == IBCOLL_OK, "barrier");
  expect(ibcoll_team_free(half) == IBCOLL_OK, "team_free");
  expect(ibcoll_team_free(world) == IBCOLL_ERR_INVALID_ARGUMENT, "freeing the world");
  expect(strstr(ibcoll_last_error(), "belongs to its context") != NULL, "the text of an error");
  expect(strcmp(ibcoll_version_string(), "") != 0 && ibcoll_info_json(context, NULL, 0) > 100, "the library's state");
}

static void end(void) {
  use();
  expect(ibcoll_context_destroy(context) == IBCOLL_OK, "destroy");
  expect(ibcoll_context_create(NULL, &context) == IBCOLL_OK, "another context");
  use();
  expect(ibcoll_context_destroy(context) == IBCOLL_OK, "destroy");
  say("late: right\n");
}

/* Until the process ends. */
static void* keep_using(void* unused) {
  while (going >= 0) use(), ++going;
  return unused;
}

/* `when`: destructor (of this library), too_late (the same, where the network's library has ended), atexit (a function
 * that runs after all others), leak (never: the context stays), thread (a thread is in the middle of calls when the
 * process ends), inside (it does not use ibcoll itself: the thread of another plugin is in the middle of UCX then). */
void late_begin(const char* when) {
  if (strcmp(when, "inside") == 0) {
    ends_after_ucx = 1;
    late_inside = LATE_HOLD_NEXT;
    while (late_inside != LATE_HELD) usleep(1000);
    return;
  }
  if (strcmp(when, "atexit") == 0) atexit(end); /* before ibcoll, or what it uses, has registered anything */
  expect(ibcoll_context_create(NULL, &context) == IBCOLL_OK, "create");
  use();
  by_destructor = strcmp(when, "destructor") == 0;
  too_late = strcmp(when, "too_late") == 0;
  if (strcmp(when, "thread") == 0) {
    pthread_t thread;
    expect(pthread_create(&thread, NULL, keep_using, NULL) == 0, "pthread_create");
    while (going < 3) usleep(1000);
  }
}

/* Works, or is refused: UCX may have ended. */
static void end_too_late(void) {
  const ibcoll_status_t status = ibcoll_context_destroy(context);
  expect(status == IBCOLL_OK || (status == IBCOLL_ERR_UNSUPPORTED && strstr(ibcoll_last_error(), "ended UCX") != NULL),
         "destroy");
  expect(status == IBCOLL_OK || ibcoll_info_json(context, NULL, 0) == 0, "the state of a context that is closed");
  say("late: right\n");
}

__attribute__((destructor)) static void unload(void) {
  if (by_destructor) end();
  if (too_late) end_too_late();
  if (ends_after_ucx) { /* time for the thread to be seen */
    late_over = 1;
    usleep(300000);
  }
}
