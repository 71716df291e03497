// SPDX-License-Identifier: BSD-3-Clause
// The lines of a trace file. docs/ibcoll_trace.md has their format. All return false for a line that is malformed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tools/traces/trace.h"

namespace ibcoll::tracing {

constexpr int kOldestVersion = 4, kNewestVersion = 5;

// How many lines of each kind follow the first one.
struct LineCounts {
  uint64_t calls = 0, sites = 0, teams = 0, counts = 0;
};

// The version of the trace that begins with this line; 0: it is no trace.
int version_of(std::string_view line);
bool read_header(std::string_view line, RankTrace& trace, LineCounts& follow);
bool read_site(std::string_view line, Site& site);
bool read_team(std::string_view line, RankTrace& trace);
bool read_counts(std::string_view line, RankTrace& trace);
bool read_record(std::string_view line, RankTrace& trace, bool messages, Record& record);

}  // namespace ibcoll::tracing
