/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Ranks die one after the other, as many as the argument says, and the others agree and shrink. perf/measure deaths.
 * Times in seconds, of one clock: prints when a rank dies, when the first and the last of the others see it, how long an
 * agreement before it took from the last arrival to the last return, and the agreement and the shrinking after it. */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "ibcoll.h"

enum { kBefore, kBeforeEnd, kError, kAgrees, kAgreed, kShrinks, kShrunk, kTimes };

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void must(ibcoll_status_t status, const char* what) {
  if (status == IBCOLL_OK) return;
  fprintf(stderr, "ibcoll_deaths: %s: %s\n", what, ibcoll_last_error());
  exit(1);
}

static void agree(ibcoll_team_t team, double* begin, double* end) {
  uint64_t flags = 0;
  int failed[4096], count = 4096;
  *begin = now();
  must(ibcoll_team_agree(team, &flags, failed, &count), "ibcoll_team_agree");
  *end = now();
}

int main(int argc, char** argv) {
  ibcoll_context_t context = NULL;
  must(ibcoll_context_create(NULL, &context), "ibcoll_context_create");
  const ibcoll_team_t world = ibcoll_team_world(context);
  ibcoll_team_t team = world;
  const int deaths = argc > 1 ? atoi(argv[1]) : 1;
  for (int i = 0; i < deaths; ++i) {
    double own[kTimes], least[kTimes], most[kTimes];
    for (int warm = 0; warm < 20; ++warm) must(ibcoll_barrier(team), "ibcoll_barrier");
    agree(team, &own[kBefore], &own[kBeforeEnd]);
    if (ibcoll_team_rank(team) == ibcoll_team_size(team) / 2) {
      printf("death %.9f\n", now());
      fflush(stdout);
      raise(SIGKILL);
    }
    while (ibcoll_barrier(team) == IBCOLL_OK) {
    }
    own[kError] = now();
    agree(team, &own[kAgrees], &own[kAgreed]);
    ibcoll_team_t shrunk = NULL;
    own[kShrinks] = now();
    must(ibcoll_team_shrink(team, &shrunk), "ibcoll_team_shrink");
    own[kShrunk] = now();
    if (team != world) must(ibcoll_team_free(team), "ibcoll_team_free");
    team = shrunk;
    must(ibcoll_allreduce(team, own, least, kTimes, IBCOLL_DOUBLE, IBCOLL_MIN), "ibcoll_allreduce");
    must(ibcoll_allreduce(team, own, most, kTimes, IBCOLL_DOUBLE, IBCOLL_MAX), "ibcoll_allreduce");
    if (ibcoll_team_rank(team) != 0) continue;
    printf("first %.9f last %.9f before %.9f agree %.9f shrink %.9f\n", least[kError], most[kError],
           most[kBeforeEnd] - most[kBefore], most[kAgreed] - most[kAgrees], most[kShrunk] - most[kShrinks]);
    fflush(stdout);
  }
  if (team != world) must(ibcoll_team_free(team), "ibcoll_team_free");
  must(ibcoll_context_destroy(context), "ibcoll_context_destroy");
  return 0;
}
