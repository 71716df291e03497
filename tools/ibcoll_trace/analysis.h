// SPDX-License-Identifier: BSD-3-Clause
// Table 1 of the paper: how far apart ranks arrive. All are means over the calls of a row.
#pragma once

#include <string>
#include <vector>

#include "tools/traces/trace.h"

namespace ibcoll::tracing {

struct Row {
  std::string collective;
  Site site;
  uint64_t calls = 0;
  double mean_bytes = 0;
  double message_us = 0;      // T: alpha + beta * bytes
  double average_factor = 0;  // d-bar / T
  double worst_factor = 0;    // theta / T
  double spread_us = 0;       // theta: from the first arrival to the last
  double after_last_us = 0;   // from the last arrival to the last exit
  int late_rank = 0;          // last most often
  uint64_t late_calls = 0;
};

std::vector<Row> table_one(const TracedJob& job);

}  // namespace ibcoll::tracing
