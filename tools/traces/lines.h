// SPDX-License-Identifier: BSD-3-Clause
// The lines of a trace file. docs/ibcoll_trace.md has their format. Those that return false do so for a line that is
// malformed.
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
constexpr uint64_t kMostElements = uint64_t{1} << 24;  // of the lists of teams and sizes: a rank keeps 64 MB of them

// Returns what is wrong with it; "": nothing.
std::string read_header(std::string_view line, RankTrace& trace, LineCounts& follow);
bool read_site(std::string_view line, Site& site);
// Adds the length of the list to `elements`.
bool read_team(std::string_view line, RankTrace& trace, uint64_t& elements);
bool read_counts(std::string_view line, RankTrace& trace, uint64_t& elements);
bool read_record(std::string_view line, RankTrace& trace, bool messages, Record& record);

}  // namespace ibcoll::tracing
