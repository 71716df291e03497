// SPDX-License-Identifier: BSD-3-Clause
// Rows of --arrival: each call comes after a barrier and the delays of a pattern.
#pragma once

#include <string>

#include "perf/arrival/prepare.h"
#include "perf/ibcoll_perf/bench_case.h"
#include "perf/ibcoll_perf/job_pairs.h"
#include "perf/ibcoll_perf/report.h"

namespace ibcoll::perf {

// Functions are collective and return false after a failure, which the job has the text of.
class Arrivals {
 public:
  Arrivals(PerfJob& job, const Options& options)
      : job_(job), options_(options), pairs_(job), pattern_(options.pattern) {}

  // Reads the pattern's file and measures clocks and messages.
  bool open();
  std::string heading() const { return arrival_heading(options_.arrival, bed_); }
  // The figures of a case that is ready, on rank 0; errors on all ranks.
  bool measure(BenchCase& bench, Row& row);

 private:
  PerfJob& job_;
  const Options& options_;
  JobPairs pairs_;
  ArrivalPattern pattern_;
  ArrivalBed bed_;
};

}  // namespace ibcoll::perf
