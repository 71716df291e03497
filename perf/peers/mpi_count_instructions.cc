// SPDX-License-Identifier: BSD-3-Clause
// The calls of an MPI program whose instructions perf/measure counts, under callgrind: blocking calls of 8 bytes between
// two ranks, whose buffers change. The counted rank calls well after the other one, so what it needs is there.
//
//   mpi_count_instructions RANK     the rank that is counted
#define OMPI_SKIP_MPICXX 1  // the C interface only
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>
#include <valgrind/callgrind.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace {

constexpr int kWarmup = 12;              // until plan, memory and credit are as they stay
constexpr int kGroups = 5, kGroup = 10;  // counted calls; what a clock triggers falls into one group
constexpr int kLines = 64;               // of buffers, one call after the other
constexpr auto kLater = std::chrono::milliseconds(3);

struct alignas(64) Line {
  int64_t values[8];
};
Line send[kLines], recv[kLines];
int counted_rank = 0;

// The other rank runs, and is about to call; the counted one leaves it the time for that.
void meet_at_call(bool counted) {
  if (!counted) {
    MPI_Send(nullptr, 0, MPI_BYTE, counted_rank, 0, MPI_COMM_WORLD);
    return;
  }
  MPI_Recv(nullptr, 0, MPI_BYTE, 1 - counted_rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  std::this_thread::sleep_for(kLater);
}

template <typename Call>
void count(const char* name, bool counted, Call call) {
  int number = 0;
  auto once = [&](bool counts) {
    MPI_Barrier(MPI_COMM_WORLD);
    meet_at_call(counted);
    int64_t* const from = send[number % kLines].values;
    int64_t* const to = recv[number % kLines].values;
    ++number;
    if (counts) CALLGRIND_TOGGLE_COLLECT;
    call(from, to);
    if (counts) CALLGRIND_TOGGLE_COLLECT;
  };
  while (number < kWarmup) once(false);
  for (int group = 0; group < kGroups; ++group) {
    for (int i = 0; i < kGroup; ++i) once(counted);
    if (counted) CALLGRIND_DUMP_STATS_AT(name);
  }
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (argc != 2) {
    std::fputs("usage: mpi_count_instructions RANK; perf/measure instructions starts it\n", stderr);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  counted_rank = std::atoi(argv[1]);
  const bool counted = rank == counted_rank;
  const MPI_Comm world = MPI_COMM_WORLD;
  const MPI_Datatype type = MPI_INT64_T;
  count("barrier", counted, [=](int64_t*, int64_t*) { MPI_Barrier(world); });
  count("bcast", counted, [=](int64_t*, int64_t* to) { MPI_Bcast(to, 1, type, 0, world); });
  count("allgather", counted, [=](int64_t* from, int64_t* to) { MPI_Allgather(from, 1, type, to, 1, type, world); });
  count("alltoall", counted, [=](int64_t* from, int64_t* to) { MPI_Alltoall(from, 1, type, to, 1, type, world); });
  count("allreduce", counted, [=](int64_t* from, int64_t* to) { MPI_Allreduce(from, to, 1, type, MPI_SUM, world); });
  count("gather", counted, [=](int64_t* from, int64_t* to) { MPI_Gather(from, 1, type, to, 1, type, 0, world); });
  count("scatter", counted, [=](int64_t* from, int64_t* to) { MPI_Scatter(from, 1, type, to, 1, type, 0, world); });
  count("reduce", counted, [=](int64_t* from, int64_t* to) { MPI_Reduce(from, to, 1, type, MPI_SUM, 0, world); });
  count("scan", counted, [=](int64_t* from, int64_t* to) { MPI_Scan(from, to, 1, type, MPI_SUM, world); });
  MPI_Finalize();
  return 0;
}
