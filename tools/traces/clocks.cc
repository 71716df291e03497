// SPDX-License-Identifier: BSD-3-Clause
// The clocks of two machines, from what both did together: no rank leaves a synchronizing collective before the last
// one has arrived. Each such call bounds the offset from both sides; the offset is in the middle of what all calls
// leave, and half of that is its error. Clocks that drift apart more than that leave nothing; the error is then half
// of the contradiction.
#include <algorithm>
#include <cstdlib>
#include <limits>
#include <map>

#include "tools/traces/trace.h"

namespace ibcoll::tracing {
namespace {

constexpr int64_t kFar = std::numeric_limits<int64_t>::max() / 4;
using Key = std::pair<uint64_t, uint32_t>;

struct Span {
  int64_t last_arrival = -kFar;
  int64_t first_exit = kFar;
};

bool synchronizes(const Record& r) {
  if (r.failed) return false;
  if (r.collective == "barrier") return true;
  const bool all_to_all = r.collective == "allgather" || r.collective == "alltoall" || r.collective == "allreduce" ||
                          r.collective == "reduce_scatter_block";
  return all_to_all && r.bytes > 0;
}

std::map<Key, Span> spans_of(const std::vector<RankTrace>& traces, const std::string& clock) {
  std::map<Key, Span> spans;
  for (const RankTrace& trace : traces) {
    if (trace.clock != clock) continue;
    for (const Record& r : trace.records) {
      if (!synchronizes(r)) continue;
      Span& span = spans[{r.team, r.op}];
      span.last_arrival = std::max(span.last_arrival, r.arrival_ns);
      span.first_exit = std::min(span.first_exit, r.exit_ns);
    }
  }
  return spans;
}

ClockOffset offset_of(const std::string& clock, const std::map<Key, Span>& ours, const std::map<Key, Span>& theirs) {
  int64_t least = -kFar, most = kFar;
  for (const auto& [key, their] : theirs) {
    const auto found = ours.find(key);
    if (found == ours.end()) continue;
    most = std::min(most, found->second.first_exit - their.last_arrival);
    least = std::max(least, found->second.last_arrival - their.first_exit);
  }
  if (most == kFar) return {clock, 0, 0, false};
  return {clock, least + (most - least) / 2, std::abs(most - least) / 2, true};
}

}  // namespace

std::vector<ClockOffset> align_clocks(std::vector<RankTrace>& traces) {
  const std::string reference = traces.front().clock;
  const std::map<Key, Span> ours = spans_of(traces, reference);
  std::map<std::string, ClockOffset> offsets;
  for (RankTrace& trace : traces)
    if (trace.clock != reference) offsets[trace.clock] = {};
  std::vector<ClockOffset> list;
  for (auto& [clock, offset] : offsets) {
    offset = offset_of(clock, ours, spans_of(traces, clock));
    list.push_back(offset);
  }
  for (RankTrace& trace : traces) {
    const auto found = offsets.find(trace.clock);
    if (found == offsets.end()) continue;
    for (Record& r : trace.records) r.arrival_ns += found->second.offset_ns, r.exit_ns += found->second.offset_ns;
  }
  return list;
}

}  // namespace ibcoll::tracing
