// SPDX-License-Identifier: BSD-3-Clause
#include "perf/ibcoll_perf/arrivals.h"

#include <algorithm>
#include <vector>

#include "perf/arrival/loop.h"
#include "perf/ibcoll_perf/payload.h"
#include "perf/ibcoll_perf/plan.h"

namespace ibcoll::perf {
namespace {

// Ranks that left a barrier before the last one had entered.
uint64_t early_exits(const std::vector<double>& stamps, size_t ranks) {
  const size_t each = stamps.size() / std::max<size_t>(ranks, 1);
  uint64_t errors = 0;
  for (size_t at = 0; at < each; at += 2) {
    double last = stamps[at];
    for (size_t rank = 0; rank < ranks; ++rank) last = std::max(last, stamps[rank * each + at]);
    for (size_t rank = 0; rank < ranks; ++rank) errors += stamps[rank * each + at + 1] < last ? 1 : 0;
  }
  return errors;
}

}  // namespace

bool Arrivals::open() {
  return job_.agree(load_arrivals(pattern_, job_.size())) &&
         prepare_arrivals(pairs_, static_cast<int>(job_.topology("nodes")), options_.message_cost, bed_);
}

bool Arrivals::measure(BenchCase& bench, Row& row) {
  double message_us = 0;
  if (!payload_time(pairs_, bed_, bench.bytes(), message_us)) return false;
  const ArrivalRun run{pattern_, message_us, job_.rank(), job_.size(), bed_.setting.sleeps, bed_.offset_us};
  std::vector<double> stamps, all, calls;
  uint64_t wrong = 0;
  const bool verifies = options_.check && bench.row().moves_data();
  Payload payload(bench);
  const auto before = [&](uint64_t call) {
    if (verifies) payload.prepare(call, 0);
  };
  const auto after = [&](uint64_t) {
    if (verifies) wrong += payload.verify();
  };
  const LoopPlan& plan = options_.plan;
  if (!run_arrival_loop(bench, plan, run, before, after, stamps) || !job_.gather(stamps, all)) return false;
  const auto ranks = static_cast<size_t>(job_.size());
  if (options_.check && !verifies && bed_.setting.one_clock && job_.rank() == 0) wrong = early_exits(all, ranks);
  if (!job_.sum(wrong)) return false;
  if (options_.check && (verifies || bed_.setting.one_clock)) row.errors = wrong;
  row.iterations = stamps.size() / 2;
  ArrivalFigures& figures = row.arrival.emplace(arrival_figures(all, ranks, message_us, calls));
  row.times = summarize(calls, ranks);
  const auto bytes = static_cast<double>(bench.bytes());
  figures.cost = bed_.cost;
  figures.setting = bed_.setting;
  figures.bound = bed_.cost.of(late_rank_bytes(bench.row(), bytes, bed_.setting));
  return true;
}

}  // namespace ibcoll::perf
