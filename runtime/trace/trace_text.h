// SPDX-License-Identifier: BSD-3-Clause
// The lines of a trace. docs/ibcoll_trace.md has their format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/engine/tracer.h"

namespace ibcoll {

// The beginning of the first line, up to the numbers of what follows.
std::string header_text(const TraceHeader& header);
// A line for each team.
std::string teams_text(const TraceLists& lists);

// The lists of sizes that calls have, in the order in which they are asked for.
class TraceSizes {
 public:
  explicit TraceSizes(const TraceLists& lists) noexcept : lists_(lists) {}
  // The number of a call's list in the file; "-": it has none.
  std::string number(uint32_t counts);
  size_t size() const noexcept { return in_file_.size(); }
  // A line for each.
  std::string lines() const;

 private:
  const TraceLists& lists_;
  std::map<uint32_t, size_t> in_file_;  // by their number in lists_
  std::vector<uint32_t> order_;
};

// `site`, `sizes`: their numbers. `peers`: by peers_text().
std::string call_text(const TracedCall& call, size_t site, const std::string& sizes, const std::string& peers);
// "1/120/130/145,2/150/-/160": those from `first` up to `end`, in the order in which this rank first used them. "-": none
// are kept.
std::string peers_text(const TraceBuffer& buffer, uint64_t first, uint64_t end);

}  // namespace ibcoll
