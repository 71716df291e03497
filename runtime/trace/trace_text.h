// SPDX-License-Identifier: BSD-3-Clause
// The lines of a trace. docs/ibcoll_trace.md has their format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "runtime/engine/tracer.h"

namespace ibcoll {

// The beginning of the first line, up to the numbers of what follows.
std::string header_text(const TraceHeader& header);
// A line for each team, and for each list of sizes.
std::string lists_text(const TraceLists& lists);
// `site`: its number. `peers`: by peers_text().
std::string call_text(const TracedCall& call, size_t site, const std::string& peers);
// "1/120/130/145,2/150/-/160": those from `first` up to `end`, in the order in which this rank first used them. "-": none
// are kept.
std::string peers_text(const TraceBuffer& buffer, uint64_t first, uint64_t end);

}  // namespace ibcoll
