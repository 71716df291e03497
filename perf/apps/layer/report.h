// SPDX-License-Identifier: BSD-3-Clause
// The report that each application prints at its end: time in collectives and in total, and how unevenly ranks arrived.
#pragma once

#include <string>
#include <vector>

#include "perf/apps/layer/job.h"

namespace apps {

// All calls of one collective.
struct Row {
  std::string collective;
  uint64_t calls = 0, bytes = 0;            // bytes: mean over calls
  double in_calls_us = 0;                   // sum over calls, mean over ranks
  double after_last_us = 0;                 // sum over calls, from the last arrival to the last exit
  double message_us = 0;                    // T: one message of `bytes` bytes between the first and the last rank
  double average_case = 0, worst_case = 0;  // imbalance factors, means over calls
};

struct Report {
  std::vector<Row> rows;
  double total_us = 0;       // of the slowest rank
  bool common_clock = true;  // false: the columns that compare ranks' clocks say nothing
};

// Collective, after AppJob::end().
Error make_report(AppJob& job, Report& report);
// Lines for a person, or rows of CSV (times in microseconds).
std::string text_of(const Report& report, const std::string& title, int ranks);
std::string csv_of(const Report& report);

}  // namespace apps
