// SPDX-License-Identifier: BSD-3-Clause
#include "perf/ibcoll_perf/checked_loop.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "perf/ibcoll_perf/payload.h"

namespace ibcoll::perf {
namespace {

constexpr std::chrono::microseconds kLate(50);

// One round: fill, some calls but `most` at most, verify the last one. Appends the time of each call.
bool run_round(BenchCase& bench, Payload& payload, uint64_t round, uint64_t most, std::vector<double>& calls,
               uint64_t& wrong) {
  for (uint64_t i = 0; i < std::min(1 + round % Payload::kMostCalls, most); ++i) {
    payload.prepare(round, i);
    const double begin = now_us();
    if (!bench.call()) return false;
    calls.push_back(now_us() - begin);
  }
  wrong += payload.verify();
  return true;
}

bool run_rounds(BenchCase& bench, const LoopPlan& plan, std::vector<double>& calls, uint64_t& wrong) {
  Payload payload(bench);
  uint64_t round = 0;
  double round_us = 0;  // of the last warm-up: the first one connects and touches memory
  const auto warmup = static_cast<uint64_t>(std::max<int64_t>(plan.warmup, 2));
  for (; round < warmup; ++round) {
    const double begin = now_us();
    if (!run_round(bench, payload, round, Payload::kMostCalls, calls, wrong)) return false;
    round_us = now_us() - begin;
  }
  if (!bench.largest(round_us)) return false;
  const double fitting = std::clamp(plan.budget_us / round_us, 3.0, 200.0);
  const uint64_t wanted = plan.iterations > 0 ? plan.iterations : static_cast<uint64_t>(fitting);
  calls.clear();
  while (calls.size() < wanted) {
    if (!run_round(bench, payload, round++, wanted - calls.size(), calls, wrong)) return false;
  }
  return bench.job().sum(wrong);
}

// Compares, call by call, when the last rank entered and the first one left. One rank after the other comes late, so
// that a barrier that lets the others go shows.
bool check_barriers(BenchCase& bench, const LoopPlan& plan, std::vector<double>& calls,
                    std::optional<uint64_t>& errors) {
  const uint64_t count = plan.iterations > 0 ? plan.iterations : 1000;
  const auto ranks = static_cast<uint64_t>(bench.job().size());
  std::vector<double> times, all;
  for (int64_t i = 0; i < std::max<int64_t>(plan.warmup, 2); ++i) {
    if (!bench.call()) return false;
  }
  if (!bench.barrier()) return false;
  for (uint64_t i = 0; i < count; ++i) {
    if (i % ranks == static_cast<uint64_t>(bench.job().rank())) std::this_thread::sleep_for(kLate);
    times.push_back(now_us());
    if (!bench.call()) return false;
    times.push_back(now_us());
    calls.push_back(times[2 * i + 1] - times[2 * i]);
  }
  int one_clock = 0;
  if (!ranks_on_this_kernel(bench.job(), one_clock) || !bench.job().gather(times, all)) return false;
  if (one_clock < bench.job().size()) return true;
  errors = 0;
  for (uint64_t i = 0; i < count && !all.empty(); ++i) {
    double last_in = 0;
    for (size_t rank = 0; rank < static_cast<size_t>(bench.job().size()); ++rank) {
      last_in = std::max(last_in, all[rank * times.size() + 2 * i]);
    }
    for (size_t rank = 0; rank < static_cast<size_t>(bench.job().size()); ++rank) {
      if (all[rank * times.size() + 2 * i + 1] < last_in) ++*errors;
    }
  }
  return bench.job().sum(*errors);
}

}  // namespace

bool run_checked_loop(BenchCase& bench, const LoopPlan& plan, std::vector<double>& calls,
                      std::optional<uint64_t>& errors) {
  calls.clear();
  errors.reset();
  if (!bench.row().moves_data()) return check_barriers(bench, plan, calls, errors);
  uint64_t wrong = 0;
  if (!run_rounds(bench, plan, calls, wrong)) return false;
  errors = wrong;
  return true;
}

}  // namespace ibcoll::perf
