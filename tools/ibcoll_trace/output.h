// SPDX-License-Identifier: BSD-3-Clause
// What ibcoll_trace prints and writes.
#pragma once

#include <string>
#include <vector>

#include "tools/ibcoll_trace/analysis.h"
#include "tools/ibcoll_trace/trace.h"

namespace ibcoll::tracing {

// `format`: "table", "csv" or "json". `calls`: as many calls, those whose ranks arrived furthest apart, are shown with
// the order in which each rank served its peers; not with csv.
std::string report(const Job& job, const std::string& format, size_t calls);
// The table of arrivals, as texts: its columns, a row of it, and what T is.
std::vector<std::string> table_titles();
std::vector<std::string> table_cells(const Row& row);
std::string message_time(const Job& job);
// For ibcoll_perf --arrival file: the calls of teams of all ranks of the job.
std::string arrivals(const Job& job);
// One page that needs nothing else.
std::string page(const Job& job);

}  // namespace ibcoll::tracing
