// SPDX-License-Identifier: BSD-3-Clause
// Several threads of each rank call on teams of one context at the same time, each on a team of its own. All calls take
// the context's lock, so what counts is what a call costs the process.
//   ibcoll_run -n 2 ibcoll_threads [SECONDS]
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "ibcoll.h"
#include "perf/call_times.h"
#include "perf/measures/must.h"

namespace {

using ibcoll::perf::largest;
using ibcoll::perf::must;

constexpr int kMostThreads = 4;
constexpr int kBatches = 11;

void sum(ibcoll_team_t team, uint64_t calls) {
  double mine = 1, all = 0;
  for (uint64_t i = 0; i < calls; ++i)
    must(ibcoll_allreduce(team, &mine, &all, 1, IBCOLL_DOUBLE, IBCOLL_SUM), "ibcoll_allreduce");
}

// Microseconds per call of all threads together, `calls` in each.
double us_per_call(ibcoll_team_t world, const std::vector<ibcoll_team_t>& teams, uint64_t calls) {
  must(ibcoll_barrier(world), "ibcoll_barrier");
  const double begin = ibcoll::perf::now_us();
  std::vector<std::thread> threads;
  for (size_t i = 1; i < teams.size(); ++i) threads.emplace_back(sum, teams[i], calls);
  sum(teams[0], calls);
  for (std::thread& thread : threads) thread.join();
  return (ibcoll::perf::now_us() - begin) / static_cast<double>(calls * teams.size());
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::strtod(argv[1], nullptr) : 3;
  if (argc > 2 || seconds <= 0 || seconds > 600) {
    std::fputs("usage: ibcoll_run -n 2 ibcoll_threads [SECONDS]\n", stderr);
    return 2;
  }
  ibcoll_context_t context = nullptr;
  must(ibcoll_context_create(nullptr, &context), "ibcoll_context_create");
  const ibcoll_team_t world = ibcoll_team_world(context);
  const bool prints = ibcoll_team_rank(world) == 0;
  for (int threads = 1; threads <= kMostThreads; threads *= 2) {
    std::vector<ibcoll_team_t> teams(static_cast<size_t>(threads));
    for (ibcoll_team_t& team : teams)
      must(ibcoll_team_split(world, 0, ibcoll_team_rank(world), &team), "ibcoll_team_split");
    const double first = largest(world, us_per_call(world, teams, 100));
    const double share = seconds * 1e6 / 3 / kBatches / static_cast<double>(threads);
    const auto calls = static_cast<uint64_t>(std::clamp(share / first, 10.0, 1e7));
    std::array<double, kBatches> all{};
    for (double& one : all) one = largest(world, us_per_call(world, teams, calls));
    std::sort(all.begin(), all.end());
    if (prints)
      std::printf("allreduce of 8 bytes, %d thread%s a rank, a team each: %.2f us per call (%.2f to %.2f)\n", threads,
                  threads == 1 ? "" : "s", all[kBatches / 2], all.front(), all.back());
    std::fflush(stdout);
    for (const ibcoll_team_t team : teams) must(ibcoll_team_free(team), "ibcoll_team_free");
  }
  must(ibcoll_context_destroy(context), "ibcoll_context_destroy");
  return 0;
}
