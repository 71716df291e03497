// SPDX-License-Identifier: BSD-3-Clause
// The calls whose instructions perf/measure counts, under callgrind: blocking calls of 8 bytes between two ranks, whose
// buffers change. What the counted rank needs is there when it calls, so it never waits, and the counts do not depend on
// what else the machine does.
//
//   ibcoll_count_instructions RANK [COLLECTIVE...]     the rank that is counted; only that one runs under callgrind
#include <valgrind/callgrind.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string_view>
#include <vector>

#include "tools/oracle/blocking_call.h"
#include "tools/timed_algorithms/timed_algorithms.h"

namespace ibcoll::perf {
namespace {

constexpr uint64_t kBytes = 8, kRoom = 4096, kStep = 64;
constexpr int kWarmup = 12;              // until plan, memory and credit are as they stay
constexpr int kGroups = 5, kGroup = 10;  // counted calls; what a clock triggers falls into one group

class CountedCalls {
 public:
  CountedCalls(ibcoll_team_t team, bool counted) : team_(team), counted_(counted), watch_(team) {}

  void run(const Collective& row) { run(row, row.moves_data() ? kBytes : 0, row.name); }
  void run(const Collective& row, uint64_t bytes, const char* name) {
    SampleCall call(row, bytes, ibcoll_team_size(team_), kRoom);
    int number = 0;
    run(call, number, kWarmup, false);
    for (int group = 0; group < kGroups; ++group) {
      run(call, number, kGroup, true);
      CALLGRIND_DUMP_STATS_AT(name);
    }
  }

 private:
  void run(SampleCall& call, int& number, int calls, bool counts) {
    for (const int end = number + calls; number < end; ++number) {
      const ibcoll_collective_args_t& args = *call.with(nullptr, static_cast<uint64_t>(number) * kStep % kRoom);
      counted_ ? late(args, counts) : early(args);
      meet();
    }
  }

  void meet() { expect_ok(ibcoll_barrier(watch_.own_team()), "ibcoll_barrier"); }

  // Has done its part when both have met.
  void early(const ibcoll_collective_args_t& args) {
    ibcoll_request_t request = nullptr;
    expect_ok(ibcoll_collective_start(team_, &args, &request), "ibcoll_collective_start");
    meet();
    expect_ok(ibcoll_wait(request), "ibcoll_wait");
    expect_ok(ibcoll_request_free(request), "ibcoll_request_free");
  }

  void late(const ibcoll_collective_args_t& args, bool counts) {
    meet();
    if (counts) CALLGRIND_TOGGLE_COLLECT;
    const ibcoll_status_t status = oracle::blocking_call(team_, args);
    if (counts) CALLGRIND_TOGGLE_COLLECT;
    expect_ok(status, "the call");
  }

  ibcoll_team_t team_;
  bool counted_;
  Stopwatch watch_;  // for its team
};

}  // namespace
}  // namespace ibcoll::perf

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fputs("usage: ibcoll_count_instructions RANK [COLLECTIVE...]; perf/measure instructions starts it\n", stderr);
    return 2;
  }
  try {
    ibcoll_context_t context = nullptr;
    ibcoll::expect_ok(ibcoll_context_create(nullptr, &context), "ibcoll_context_create");
    {
      ibcoll::perf::CountedCalls calls(ibcoll_team_world(context), ibcoll_context_rank(context) == std::atoi(argv[1]));
      const std::vector<std::string_view> wanted(argv + 2, argv + argc);
      for (const ibcoll::Collective& row : ibcoll::kCatalog)
        if (wanted.empty() || std::find(wanted.begin(), wanted.end(), row.name) != wanted.end()) calls.run(row);
      if (wanted.empty()) calls.run(ibcoll::kCatalog[IBCOLL_ALLTOALL], 0, "nothing");
    }
    ibcoll::expect_ok(ibcoll_context_destroy(context), "ibcoll_context_destroy");
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "ibcoll_count_instructions: %s\n", problem.what());
    return 1;
  }
  return 0;
}
