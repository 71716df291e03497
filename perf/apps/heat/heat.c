/* SPDX-License-Identifier: BSD-3-Clause
 * Heat spreads over a square plate, in time steps; each rank has some rows. Ranks of the job die, as many as the argument
 * says, one after the other, rank 0 first. The others restore the lost rows from a neighbour's copy and go on: the answer
 * is that of a run without deaths, bit for bit. ibcoll_run -n 16 --keep-going ibcoll_heat 3 */
#include <ibcoll.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kSize = 192, kSteps = 1500, kStepsOfPhase = 50, kMostRanks = kSize };
typedef double Row[kSize];
typedef struct {
  int ranks[kMostRanks]; /* of the job */
  int size;
} Members;
typedef struct {
  Members members; /* none: the plate as it was in the beginning */
  int step;
  Row *own, *before; /* this rank's rows, and those of the rank before it */
} Copy;

static ibcoll_team_t team;
static Members members; /* of the team */
static int job_rank, job_size, deaths, step;
static Row *rows, *new_rows; /* of this rank */
static Copy kept, next;      /* `next` counts once all ranks have it */
static double temperature, heat;

static void must(int right, const char* what) {
  if (right) return;
  fprintf(stderr, "rank %d: %s: %s\n", job_rank, what, ibcoll_last_error());
  exit(1);
}
static Row* resized(Row* old, int count) {
  Row* const result = realloc(old, (size_t)(count + 1) * sizeof(Row));
  must(result != NULL, "no memory");
  return result;
}

/* Rows are shared out by the places of the ranks in a team. */
static int first_row(int place, int size) { return kSize * place / size; }
static int owner_of(int row, int size) {
  int place = row * size / kSize;
  while (first_row(place + 1, size) <= row) ++place;
  return place;
}
static int place_of(int rank) {
  for (int i = 0; i < members.size; ++i)
    if (members.ranks[i] == rank) return i;
  return -1;
}

/* ---------------------------------------------------------------- a phase: 0 where a call on the team has failed */

static void begin_again(int first, int count) {
  memset(rows, 0, (size_t)count * sizeof(Row));
  for (int i = 0; i < count; ++i)
    for (int j = 0; j < kSize; ++j)
      if (hypot(first + i - kSize / 3.0, j - kSize / 2.0) < kSize / 8.0) rows[i][j] = 100; /* a hot disc */
  step = 0;
}

/* Who has this row of the copy: a place in the team; -1: its rank and the next one have died. */
static int holder_of(int row) {
  const Members* const old = &kept.members;
  const int owner = owner_of(row, old->size), place = place_of(old->ranks[owner]);
  return place >= 0 ? place : place_of(old->ranks[(owner + 1) % old->size]);
}
static const double* copy_of(int row) {
  const Members* const old = &kept.members;
  const int owner = owner_of(row, old->size), line = row - first_row(owner, old->size);
  return old->ranks[owner] == job_rank ? kept.own[line] : kept.before[line];
}

/* Each row goes from the rank that has a copy to the rank that has it from now on. */
static int restore(void) {
  members.size = ibcoll_team_size(team);
  if (ibcoll_allgather(team, &job_rank, members.ranks, sizeof job_rank) != IBCOLL_OK) return 0;
  const int self = place_of(job_rank), first = first_row(self, members.size);
  const int count = first_row(self + 1, members.size) - first;
  rows = resized(rows, count), new_rows = resized(new_rows, count);
  int lost = kept.members.size == 0;
  for (int row = 0; row < kSize && !lost; ++row) lost = holder_of(row) < 0;
  if (lost) return begin_again(first, count), 1;

  uint64_t sent[kMostRanks] = {0}, sent_at[kMostRanks], got[kMostRanks] = {0}, got_at[kMostRanks], all = 0;
  Row *out = resized(NULL, kSize), *in = resized(NULL, count), *end = out;
  for (int row = 0; row < kSize; ++row) {
    if (holder_of(row) != self) continue;
    memcpy(*end++, copy_of(row), sizeof(Row));
    sent[owner_of(row, members.size)] += sizeof(Row);
  }
  for (int row = first; row < first + count; ++row) got[holder_of(row)] += sizeof(Row);
  for (int i = 0; i < members.size; ++i) sent_at[i] = i ? sent_at[i - 1] + sent[i - 1] : 0;
  for (int i = 0; i < members.size; ++i) got_at[i] = all, all += got[i];
  const int well = ibcoll_alltoallv(team, out, sent, sent_at, in, got, got_at) == IBCOLL_OK;
  for (int i = 0; i < count && well; ++i) {
    uint64_t* const at = &got_at[holder_of(first + i)];
    memcpy(rows[i], (char*)in + *at, sizeof(Row));
    *at += sizeof(Row);
  }
  free(out), free(in);
  step = kept.step;
  return well;
}

/* One step of all rows, with the edges of the neighbours. Outside of the plate it is 0 degrees. */
static int advance(int self, int count) {
  static const Row outside = {0};
  static Row edges[2 * kMostRanks], own[2];
  memcpy(own[0], rows[0], sizeof(Row)), memcpy(own[1], rows[count - 1], sizeof(Row));
  if (ibcoll_allgather(team, own, edges, sizeof own) != IBCOLL_OK) return 0;
  for (int i = 0; i < count; ++i) {
    const double* const above = i > 0 ? rows[i - 1] : self > 0 ? edges[2 * self - 1] : outside;
    const double* const below = i < count - 1 ? rows[i + 1] : self < members.size - 1 ? edges[2 * self + 2] : outside;
    for (int j = 0; j < kSize; ++j) {
      const double left = j > 0 ? rows[i][j - 1] : 0, right = j < kSize - 1 ? rows[i][j + 1] : 0;
      new_rows[i][j] = rows[i][j] + 0.2 * (above[j] + below[j] + left + right - 4 * rows[i][j]);
    }
  }
  Row* const old = rows;
  rows = new_rows, new_rows = old, ++step;
  return 1;
}

/* Its own rows, and those of the rank before it. */
static int copy(int self, int count) {
  const int size = members.size, before = (self + size - 1) % size;
  const int rows_before = first_row(before + 1, size) - first_row(before, size);
  uint64_t sent[kMostRanks] = {0}, got[kMostRanks] = {0}, at[kMostRanks] = {0};
  next.members = members, next.step = step;
  next.own = resized(next.own, count), next.before = resized(next.before, rows_before);
  memcpy(next.own, rows, (size_t)count * sizeof(Row));
  sent[(self + 1) % size] = (uint64_t)count * sizeof(Row);
  got[before] = (uint64_t)rows_before * sizeof(Row);
  return ibcoll_alltoallv(team, next.own, sent, at, next.before, got, at) == IBCOLL_OK;
}

/* At the first rank: the temperature in the middle, and the sum of all, in the order of the rows. */
static int answer(int self, int count) {
  uint64_t counts[kMostRanks], at[kMostRanks];
  for (int i = 0; i < members.size; ++i) {
    at[i] = (uint64_t)first_row(i, members.size) * sizeof(Row);
    counts[i] = (uint64_t)first_row(i + 1, members.size) * sizeof(Row) - at[i];
  }
  Row* const plate = self == 0 ? resized(NULL, kSize) : NULL;
  const int well = ibcoll_gatherv(team, rows, (uint64_t)count * sizeof(Row), plate, counts, at, 0) == IBCOLL_OK;
  heat = 0;
  for (int i = 0; plate && well && i < kSize; ++i)
    for (int j = 0; j < kSize; ++j) heat += plate[i][j];
  if (plate && well) temperature = plate[kSize / 2][kSize / 2];
  free(plate);
  return well;
}

static int run_phase(int restores) {
  if (restores && !restore()) return 0;
  const int self = place_of(job_rank), count = first_row(self + 1, members.size) - first_row(self, members.size);
  const int end = step + kStepsOfPhase;
  while (step < end) {
    for (int i = 0; i < deaths && members.size > 1; ++i)
      if (job_rank == 5 * i % job_size && step == kSteps * (i + 1) / (deaths + 1) + 17) raise(SIGKILL);
    if (!advance(self, count)) return 0;
  }
  return copy(self, count) && (step < kSteps || answer(self, count));
}

/* ---------------------------------------------------------------- phases, and what is between them */

int main(int argc, char** argv) {
  ibcoll_context_t context;
  must(ibcoll_context_create(NULL, &context) == IBCOLL_OK, "ibcoll_context_create");
  team = ibcoll_team_world(context);
  job_rank = ibcoll_context_rank(context);
  deaths = argc > 1 ? atoi(argv[1]) : 0;
  job_size = ibcoll_context_size(context);
  must(job_size <= kMostRanks, "at most a rank for each row");

  for (int restores = 1;;) {
    uint64_t well = run_phase(restores);
    if (!well) must(ibcoll_team_revoke(team) == IBCOLL_OK, "ibcoll_team_revoke"); /* others may wait for this rank */
    int failed[kMostRanks], count = kMostRanks;
    must(ibcoll_team_agree(team, &well, failed, &count) == IBCOLL_OK, "ibcoll_team_agree");
    restores = !well || count > 0;
    if (!restores) { /* all ranks have the copy: it counts */
      const Copy old = kept;
      kept = next, next = old;
      if (step >= kSteps) break;
      continue;
    }
    ibcoll_team_t shrunk;
    must(ibcoll_team_shrink(team, &shrunk) == IBCOLL_OK, "ibcoll_team_shrink");
    if (team != ibcoll_team_world(context)) ibcoll_team_free(team);
    team = shrunk;
    if (ibcoll_team_rank(team) == 0) printf("%d ranks go on from step %d\n", ibcoll_team_size(team), kept.step);
  }
  if (ibcoll_team_rank(team) == 0) printf("%.15g degrees in the middle, %.15g in all\n", temperature, heat);
  if (team != ibcoll_team_world(context)) ibcoll_team_free(team);
  must(ibcoll_context_destroy(context) == IBCOLL_OK, "ibcoll_context_destroy");
  return 0;
}
