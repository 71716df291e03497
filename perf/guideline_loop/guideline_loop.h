// SPDX-License-Identifier: BSD-3-Clause
// Times each guideline: its call and its mock-up alternate in one job, so that other load on the machine affects both.
// Prints a row for each repetition; perf/guidelines judges them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <memory>
#include <string>

#include "perf/call_times.h"
#include "perf/calls.h"
#include "perf/guideline_loop/guidelines.h"

namespace ibcoll::perf {

struct GuidelinePlan {
  uint64_t least_bytes = 8, most_bytes = 512 << 10, factor = 8;  // multiples of 16: half a size holds doubles, too
  uint64_t repetitions = 20;
  double seconds = 0.1;  // for all repetitions of one side
};

// One side of a comparison: `times` calls of a way with `bytes`.
template <typename L>
struct Side {
  Way<L> way;
  uint64_t bytes, times = 1;
};

template <typename L>
class GuidelineLoop {
 public:
  // Throws std::bad_alloc.
  GuidelineLoop(L& library, const GuidelinePlan& plan) : library_(library), plan_(plan) {
    // Three blocks: the largest irregular one, and the next size that monotony is checked with.
    const uint64_t room = 3 * plan.most_bytes * static_cast<uint64_t>(library.size()) + ChangingBuffers::kRoom;
    for (auto* buffer : {&send_, &recv_, &spare_}) {
      *buffer = std::make_unique<char[]>(room);
      std::memset(buffer->get(), 0, room);
    }
  }

  void run() {
    if (library_.rank() == 0) std::puts("guideline,bytes,repetition,call_us,mock_up_us");
    for (uint64_t bytes = plan_.least_bytes; bytes <= plan_.most_bytes; bytes *= plan_.factor) {
      for (const auto& guideline : kGuidelines<L>)
        if (guideline.sized || bytes == plan_.least_bytes)
          compare(guideline.name, guideline.sized ? bytes : 0, {guideline.call, bytes}, {guideline.mock_up, bytes});
      for (const auto& way : kWays<L>) {
        const std::string name = way.name;
        compare(name + "<=larger", bytes, {way.run, bytes}, {way.run, 2 * bytes});
        if (bytes >= 16) compare(name + "<=halves", bytes, {way.run, bytes}, {way.run, bytes / 2, 2});
      }
    }
  }

 private:
  // A library may try several ways in the first calls: those are not timed, unless they take too long.
  static constexpr uint64_t kWarmup = 70;
  static constexpr double kWarmupUs = 1e6;

  GuidelineBuffers buffers() {
    const uint64_t at = offsets_.next();
    return {send_.get() + at, recv_.get() + at, spare_.get() + at};
  }

  // Microseconds that the slowest rank needs for one of `count` calls in a row.
  double timed(const Side<L>& side, uint64_t count) {
    library_.barrier();
    const double begin = now_us();
    for (uint64_t i = 0; i < count * side.times; ++i) side.way(library_, buffers(), side.bytes);
    double mean = (now_us() - begin) / static_cast<double>(count);
    library_.largest(mean);
    return mean;
  }

  // The number of calls that fill a repetition; called after the untimed ones.
  uint64_t warmed_up(const Side<L>& side) {
    timed(side, 1);
    const double once = std::max(timed(side, 1), 0.01);
    const double after = timed(side, static_cast<uint64_t>(std::clamp(kWarmupUs / once, 3.0, double{kWarmup})));
    return static_cast<uint64_t>(
        std::clamp(plan_.seconds * 1e6 / static_cast<double>(plan_.repetitions) / std::max(after, 0.01), 1.0, 20000.0));
  }

  void compare(const std::string& name, uint64_t bytes, Side<L> call, Side<L> mock_up) {
    const uint64_t count = std::min(warmed_up(call), warmed_up(mock_up));
    for (uint64_t repetition = 0; repetition < plan_.repetitions; ++repetition) {
      double call_us = 0, mock_up_us = 0;
      if (repetition % 2 == 0) call_us = timed(call, count);
      mock_up_us = timed(mock_up, count);
      if (repetition % 2 == 1) call_us = timed(call, count);
      if (library_.rank() == 0)
        std::printf("%s,%llu,%llu,%.3f,%.3f\n", name.c_str(), static_cast<unsigned long long>(bytes),
                    static_cast<unsigned long long>(repetition), call_us, mock_up_us);
    }
    std::fflush(stdout);
  }

  L& library_;
  GuidelinePlan plan_;
  ChangingBuffers offsets_;
  std::unique_ptr<char[]> send_, recv_, spare_;
};

}  // namespace ibcoll::perf
