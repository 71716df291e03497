// SPDX-License-Identifier: BSD-3-Clause
// The calls whose instructions perf/measure counts, under callgrind: blocking calls of 8 bytes between two ranks, whose
// buffers change. What the counted rank needs is there when it calls, so it never waits, and the counts do not depend on
// what else the machine does. "idle" is a pass in which nothing is there.
//
//   ibcoll_count_instructions FILE RANK [COLLECTIVE...]     FILE: new, where the ranks meet, on the machine of both; the
//                                                           rank that is counted: only that one runs under callgrind
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>
#include <valgrind/callgrind.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "tools/oracle/blocking_call.h"
#include "tools/timed_algorithms/timed_algorithms.h"

namespace ibcoll::perf {
namespace {

constexpr uint64_t kBytes = 8, kRoom = 4096, kStep = 64;
constexpr int kWarmup = 12;              // until plan, memory and credit are as they stay
constexpr int kGroups = 5, kGroup = 10;  // counted calls; what a clock triggers falls into one group

// Where two processes meet without ibcoll, which would take messages meanwhile that the call is to take.
class MeetingPlace {
 public:
  explicit MeetingPlace(const char* file) {
    const int descriptor = ::open(file, O_RDWR | O_CREAT, 0600);
    void* const memory = descriptor >= 0 && ::ftruncate(descriptor, sizeof *arrived_) == 0
                             ? ::mmap(nullptr, sizeof *arrived_, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0)
                             : MAP_FAILED;
    if (memory == MAP_FAILED) throw std::runtime_error("the file where the ranks meet cannot be used");
    ::close(descriptor);
    arrived_ = static_cast<std::atomic<uint64_t>*>(memory);  // zeros
  }
  // Calls `meanwhile` until both are here.
  template <typename Meanwhile>
  void meet(Meanwhile meanwhile) {
    arrived_->fetch_add(1);
    for (meetings_ += 2; arrived_->load() < meetings_; ::sched_yield()) meanwhile();
  }

 private:
  std::atomic<uint64_t>* arrived_ = nullptr;
  uint64_t meetings_ = 0;
};

class CountedCalls {
 public:
  CountedCalls(ibcoll_context_t context, bool counted, const char* file)
      : context_(context), team_(ibcoll_team_world(context)), counted_(counted), place_(file) {}

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
  void idle() {
    for (int group = 0; group < kGroups; ++group) {
      CALLGRIND_TOGGLE_COLLECT;
      for (int i = 0; i < kGroup; ++i) advance();
      CALLGRIND_TOGGLE_COLLECT;
      CALLGRIND_DUMP_STATS_AT("idle");
    }
  }

 private:
  void run(SampleCall& call, int& number, int calls, bool counts) {
    for (const int end = number + calls; number < end; ++number) {
      const ibcoll_collective_args_t& args = *call.with(nullptr, static_cast<uint64_t>(number) * kStep % kRoom);
      counted_ ? late(args, counts) : early(args);
      place_.meet([] {});
    }
  }

  void advance() { expect_ok(ibcoll_progress(context_), "ibcoll_progress"); }

  // Has done its part when both have met.
  void early(const ibcoll_collective_args_t& args) {
    ibcoll_request_t request = nullptr;
    expect_ok(ibcoll_collective_start(team_, &args, &request), "ibcoll_collective_start");
    place_.meet([this] { advance(); });
    expect_ok(ibcoll_wait(request), "ibcoll_wait");
    expect_ok(ibcoll_request_free(request), "ibcoll_request_free");
  }

  void late(const ibcoll_collective_args_t& args, bool counts) {
    place_.meet([] {});
    if (counts) CALLGRIND_TOGGLE_COLLECT;
    const ibcoll_status_t status = oracle::blocking_call(team_, args);
    if (counts) CALLGRIND_TOGGLE_COLLECT;
    expect_ok(status, "the call");
  }

  ibcoll_context_t context_;
  ibcoll_team_t team_;
  bool counted_;
  MeetingPlace place_;
};

}  // namespace
}  // namespace ibcoll::perf

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fputs("usage: ibcoll_count_instructions FILE RANK [COLLECTIVE...]; perf/measure instructions starts it\n",
               stderr);
    return 2;
  }
  try {
    ibcoll_context_t context = nullptr;
    ibcoll::expect_ok(ibcoll_context_create(nullptr, &context), "ibcoll_context_create");
    {
      const bool counted = ibcoll_context_rank(context) == std::atoi(argv[2]);
      ibcoll::perf::CountedCalls calls(context, counted, argv[1]);
      const std::vector<std::string_view> wanted(argv + 3, argv + argc);
      for (const ibcoll::Collective& row : ibcoll::kCatalog)
        if (wanted.empty() || std::find(wanted.begin(), wanted.end(), row.name) != wanted.end()) calls.run(row);
      if (wanted.empty()) calls.run(ibcoll::kCatalog[IBCOLL_ALLTOALL], 0, "nothing");
      calls.idle();
    }
    ibcoll::expect_ok(ibcoll_context_destroy(context), "ibcoll_context_destroy");
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "ibcoll_count_instructions: %s\n", problem.what());
    return 1;
  }
  return 0;
}
