// SPDX-License-Identifier: BSD-3-Clause
// The timed loop itself, written once for ibcoll and for the libraries it is compared with.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "perf/call_times.h"

namespace ibcoll::perf {

struct LoopPlan {
  uint64_t iterations = 0;   // 0: as many as fill `budget_us`
  int64_t warmup = -1;       // calls before the timed ones; negative: as many as fill a quarter of `budget_us`
  double budget_us = 200e3;  // for the timed calls of one size, warm-up not counted
};

// Additional warm-up, once per process: after the start of a job its launcher and first page faults still take time,
// which would be in the times of the first size.
inline double startup_us() {
  static bool started = false;
  return std::exchange(started, true) ? 0 : 50e3;
}

// Runs one collective on every rank alike and leaves this rank's timed calls, in microseconds, in `calls`.
// `Library` gives `bool call()` (one collective, completed), `bool barrier()` and `bool largest(double& value)` (the
// largest of all ranks' values, on all ranks); false means failed, and ends the loop with false.
template <typename Library>
bool run_timed_loop(Library& library, const LoopPlan& plan, std::vector<double>& calls) {
  const auto untimed = [&](uint64_t count, double& mean_us) {
    const double begin = now_us();
    for (uint64_t i = 0; i < count; ++i) {
      if (!library.call()) return false;
    }
    mean_us = count == 0 ? 0 : (now_us() - begin) / static_cast<double>(count);
    return library.largest(mean_us);
  };

  double call_us = 0;
  auto warmup = static_cast<uint64_t>(std::max<int64_t>(plan.warmup, 0));
  if (plan.warmup < 0 || plan.iterations == 0) {
    // The first call connects and touches memory and says nothing about the following.
    if (!untimed(1, call_us)) return false;
    if (!untimed(1, call_us)) return false;
    if (plan.warmup < 0) warmup = iterations_for(call_us, plan.budget_us / 4 + startup_us());
  }
  if (warmup > 0 && !untimed(warmup, call_us)) return false;
  const uint64_t iterations = plan.iterations > 0 ? plan.iterations : iterations_for(call_us, plan.budget_us);
  calls.assign(iterations, 0.0);
  if (!library.barrier()) return false;
  double begin = now_us();
  for (uint64_t i = 0; i < iterations; ++i) {
    if (!library.call()) return false;
    const double end = now_us();
    calls[i] = end - begin;
    begin = end;
  }
  return true;
}

}  // namespace ibcoll::perf
