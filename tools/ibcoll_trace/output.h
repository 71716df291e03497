// SPDX-License-Identifier: BSD-3-Clause
// The output that ibcoll_trace prints and writes.
#pragma once

#include <string>
#include <vector>

#include "tools/ibcoll_trace/analysis.h"
#include "tools/options/output_file.h"
#include "tools/traces/page_calls.h"
#include "tools/traces/trace.h"

namespace ibcoll::tracing {

// `format`: "table", "csv" or "json". `calls`: as many calls, those whose ranks arrived furthest apart, are shown with
// the order in which each rank served its peers; not with csv.
std::string report(const TracedJob& job, const std::string& format, size_t calls);
// The table of arrivals, as texts: its columns, a row of it, and what T is.
std::vector<std::string> table_titles();
std::vector<std::string> table_cells(const Row& row);
std::string message_time(const TracedJob& job);
// For ibcoll_perf --arrival file: the calls of teams of all ranks of the job.
void write_arrivals(const TracedJob& job, OutputFile& output);
// SimGrid's time-independent traces, a file for each rank and `index` with their names, into a folder. The text says
// what was left out. INVALID_ARGUMENT: traces of an old version.
Result<std::string> write_time_independent(const std::vector<RankTrace>& traces, const std::string& folder);
// One page that needs nothing else. `shown`: as of page_calls().
void write_page(const TracedJob& job, const std::vector<PageCall>& shown, OutputFile& page);

}  // namespace ibcoll::tracing
