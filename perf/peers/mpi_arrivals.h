// SPDX-License-Identifier: BSD-3-Clause
// Rows of --arrival over MPI: the loop of ibcoll_perf.
#pragma once

#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "perf/arrival/loop.h"
#include "perf/arrival/prepare.h"
#include "perf/peers/mpi_pairs.h"

namespace ibcoll::peers {

class MpiArrivals {
 public:
  // `pattern` with its file read.
  MpiArrivals(perf::ArrivalPattern pattern, const std::optional<perf::MessageCost>& cost)
      : pattern_(std::move(pattern)) {
    perf::prepare_arrivals(pairs_, pairs_.nodes(), cost, bed_);
  }
  std::string heading(const std::string& pattern) const { return perf::arrival_heading(pattern, bed_); }

  void run(Case& one, const perf::LoopPlan& plan) {
    double message_us = 0;
    perf::payload_time(pairs_, bed_, one.bytes(), message_us);
    const perf::ArrivalRun run{pattern_, message_us, pairs_.rank(), pairs_.size(), bed_.setting.sleeps, bed_.offset_us};
    Calls calls{one, pairs_};
    const auto nothing = [](uint64_t) {};
    std::vector<double> stamps, times;
    perf::run_arrival_loop(calls, plan, run, nothing, nothing, stamps);
    const std::vector<double> all = one.gather(stamps);
    if (!one.prints()) return;
    perf::ArrivalFigures figures = perf::arrival_figures(all, one.ranks(), message_us, times);
    figures.cost = bed_.cost;
    figures.setting = bed_.setting;
    const double bytes = perf::late_rank_bytes(one.row(), static_cast<double>(one.bytes()), bed_.setting);
    figures.bound = bed_.cost.of(bytes);
    const perf::CallTimes mean = perf::summarize(times, one.ranks());
    std::printf("%s,%llu,%zu,%.3f,%.3f,%.3f,%.3f,%.3f,%.3f,%s0,mpi\n", one.name(),
                static_cast<unsigned long long>(one.bytes()), stamps.size() / 2, mean.t_min, mean.t_avg, mean.t_max,
                mean.p50, mean.p90, mean.p99, perf::arrival_csv_values(figures).c_str());
    std::fflush(stdout);
  }

 private:
  struct Calls {
    Case& one;
    MpiPairs& pairs;
    bool call() { return one.call(); }
    bool largest(double& value) { return pairs.largest(value); }
    bool progress() { return pairs.progress(); }
  };

  perf::ArrivalPattern pattern_;
  MpiPairs pairs_;
  perf::ArrivalBed bed_;
};

}  // namespace ibcoll::peers
