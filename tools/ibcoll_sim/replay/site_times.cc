// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_sim/replay/site_times.h"

#include <algorithm>
#include <memory>

#include "tools/ibcoll_sim/replay/bound.h"

namespace ibcoll::simulator {

double mean_block(const Recording& recording, const CallKind& kind) {
  if (!kind.row().irregular()) return static_cast<double>(kind.bytes);
  double sum = 0, blocks = 0;
  for (const uint32_t list : kind.lists)
    for (const uint64_t bytes : recording.lists[list]) sum += static_cast<double>(bytes), ++blocks;
  return blocks > 0 ? sum / blocks : 0;
}

SiteTimes JobTimes::sum() const {
  SiteTimes all;
  for (const SiteTimes& site : sites) {
    all.calls += site.calls;
    all.late += site.late, all.moving += site.moving, all.bound += site.bound;
  }
  return all;
}

JobTimes job_times(const Recording& recording, const std::vector<Moments>& moments, const KnownCalls* machine) {
  JobTimes times;
  times.sites.resize(recording.sites.size());
  std::vector<double> blocks;
  std::vector<std::unique_ptr<Bound>> bounds(recording.kinds.size());
  for (const CallKind& kind : recording.kinds) blocks.push_back(mean_block(recording, kind));
  const double seconds = 1e-9 / recording.ranks;
  for (const RecordedCall& call : recording.calls) {
    SiteTimes& site = times.sites[call.site];
    const auto begin = moments.begin() + static_cast<std::ptrdiff_t>(call.first), end = begin + recording.size_of(call);
    int64_t last = 0;
    for (auto at = begin; at != end; ++at) last = std::max(last, at->arrival);
    for (auto at = begin; at != end; ++at) {
      const int64_t late = std::max<int64_t>(0, std::min(at->exit, last) - at->waits);
      site.late += seconds * static_cast<double>(late);
      site.moving += seconds * static_cast<double>(at->exit - at->waits - late);
      times.total = std::max(times.total, 1e-9 * static_cast<double>(at->exit));
    }
    ++site.calls;
    site.mean_bytes += blocks[call.kind];
    if (!machine) continue;
    const CallKind& kind = recording.kinds[call.kind];
    std::unique_ptr<Bound>& bound = bounds[call.kind];
    if (!bound)
      bound = std::make_unique<Bound>(machine->machine(), machine->placement(kind.team), params_of(recording, kind));
    site.bound += seconds * bound->after_last_ns({begin, end});
  }
  for (SiteTimes& site : times.sites)
    if (site.calls > 0) site.mean_bytes /= static_cast<double>(site.calls);
  return times;
}

}  // namespace ibcoll::simulator
