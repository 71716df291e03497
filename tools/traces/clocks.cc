// SPDX-License-Identifier: BSD-3-Clause
// The clocks of two machines, from what both did together: no rank leaves a synchronizing collective before the last
// one has arrived. Each such call bounds the offset from both sides; the offset is in the middle of what all calls
// leave, and half of that is its error. Clocks that drift apart more than that leave nothing; the error is then half
// of the contradiction. Without such a call the offset is not known: the first call that both made begins on both at
// once, or, without one, the first of all.
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
  int64_t first_arrival = kFar;
  int64_t last_arrival = -kFar;  // of a call that synchronizes, as first_exit
  int64_t first_exit = kFar;
};
using Spans = std::map<Key, Span>;

bool synchronizes(const Record& r) {
  if (r.failed) return false;
  if (r.collective == "barrier") return true;
  const bool all_to_all = r.collective == "allgather" || r.collective == "alltoall" || r.collective == "allreduce" ||
                          r.collective == "reduce_scatter_block";
  return all_to_all && r.bytes > 0;
}

Spans spans_of(const std::vector<RankTrace>& traces, const std::string& clock) {
  Spans spans;
  for (const RankTrace& trace : traces) {
    if (trace.clock != clock) continue;
    for (const Record& r : trace.records) {
      Span& span = spans[{r.team, r.op}];
      span.first_arrival = std::min(span.first_arrival, r.arrival_ns);
      if (!synchronizes(r)) continue;
      span.last_arrival = std::max(span.last_arrival, r.arrival_ns);
      span.first_exit = std::min(span.first_exit, r.exit_ns);
    }
  }
  return spans;
}

// Returns when the first call begins; 0: there are none.
int64_t begin_of(const Spans& spans) {
  int64_t begin = kFar;
  for (const auto& [key, span] : spans) begin = std::min(begin, span.first_arrival);
  return spans.empty() ? 0 : begin;
}

ClockOffset offset_of(const std::string& clock, const Spans& ours, const Spans& theirs) {
  int64_t least = -kFar, most = kFar, first = kFar;
  int64_t together = begin_of(ours) - begin_of(theirs);
  for (const auto& [key, their] : theirs) {
    const auto found = ours.find(key);
    if (found == ours.end()) continue;
    const Span& our = found->second;
    if (their.first_arrival < first) first = their.first_arrival, together = our.first_arrival - first;
    if (their.first_exit == kFar || our.first_exit == kFar) continue;
    most = std::min(most, our.first_exit - their.last_arrival);
    least = std::max(least, our.last_arrival - their.first_exit);
  }
  if (most == kFar) return {clock, together, 0, false};
  return {clock, least + (most - least) / 2, std::abs(most - least) / 2, true};
}

}  // namespace

std::vector<ClockOffset> align_clocks(std::vector<RankTrace>& traces) {
  const auto read = std::find_if(traces.begin(), traces.end(), [](const RankTrace& one) { return one.version > 0; });
  if (read == traces.end()) return {};
  const std::string reference = read->clock;
  const Spans ours = spans_of(traces, reference);
  std::map<std::string, ClockOffset> offsets;
  for (const RankTrace& trace : traces)
    if (trace.version > 0 && trace.clock != reference) offsets[trace.clock] = {};
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
