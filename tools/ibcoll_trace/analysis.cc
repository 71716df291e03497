// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_trace/analysis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace ibcoll::tracing {
namespace {

struct Gathered {
  Call call;
  int team_ranks = 0;
  bool failed = false;
};

Status add(Gathered& g, const RankTrace& trace, Record& r) {
  Call& call = g.call;
  if (call.parts.empty()) {
    call.collective = r.collective, call.algorithm = r.algorithm, call.site = trace.sites[r.site];
    call.team = r.team, call.op = r.op;
    g.team_ranks = r.team_ranks;
  }
  if (call.collective != r.collective || g.team_ranks != r.team_ranks)
    return error(IBCOLL_ERR_INVALID_ARGUMENT,
                 "{}: collective #{} of team {:x} is {} on {} ranks, but rank {} has it as {} on {} ranks: the traces "
                 "do not belong together",
                 trace.path, r.op, r.team, r.collective, r.team_ranks, call.parts.front().rank, call.collective,
                 g.team_ranks);
  if (!call.parts.empty() && call.parts.back().rank == trace.rank)
    return error(IBCOLL_ERR_INVALID_ARGUMENT, "{}: collective #{} of team {:x} is recorded twice", trace.path, r.op,
                 r.team);
  call.parts.push_back({trace.rank, r.arrival_ns, r.exit_ns, r.bytes, std::move(r.served), r.in_node});
  g.failed = g.failed || r.failed;
  return {};
}

void complete(Call& call) {
  const auto earlier = [](const Part& a, const Part& b) { return a.arrival_ns < b.arrival_ns; };
  const auto [first, last] = std::minmax_element(call.parts.begin(), call.parts.end(), earlier);
  call.first_ns = first->arrival_ns, call.last_ns = last->arrival_ns, call.late = last->rank;
  for (const Part& part : call.parts)
    call.mean_bytes += static_cast<double>(part.bytes) / static_cast<double>(call.parts.size());
}

// d-bar of the paper: the mean distance from the mean arrival.
double mean_distance_ns(const Call& call) {
  const auto n = static_cast<double>(call.parts.size());
  double mean = 0, distance = 0;
  for (const Part& part : call.parts) mean += static_cast<double>(part.arrival_ns - call.first_ns) / n;
  for (const Part& part : call.parts)
    distance += std::abs(static_cast<double>(part.arrival_ns - call.first_ns) - mean) / n;
  return distance;
}

// Two calls in one line are one site. Files of one name in several folders are several.
std::string site_key(const Site& site) { return fmt::format("{} {} {}", site.text, site.file, site.module); }

double factor(double ns, double message_us) { return ns == 0 ? 0 : ns / 1e3 / message_us; }

}  // namespace

Result<TracedJob> put_together(std::vector<RankTrace> traces) {
  TracedJob job;
  job.ranks = traces.front().ranks;
  job.alpha_us = traces.front().alpha_us, job.beta_us_per_byte = traces.front().beta_us_per_byte;
  job.clocks = align_clocks(traces);
  std::map<std::pair<uint64_t, uint32_t>, Gathered> calls;
  for (RankTrace& trace : traces) {
    job.dropped += trace.dropped;
    for (Record& r : trace.records)
      if (Status status = add(calls[{r.team, r.op}], trace, r); !status.ok()) return status;
    trace.records = {};  // a large trace is not held twice
  }
  for (auto& [key, g] : calls) {
    const bool whole = static_cast<int>(g.call.parts.size()) == g.team_ranks;
    job.failed += g.failed;
    job.incomplete += !g.failed && !whole;
    if (g.failed || !whole) continue;
    complete(g.call);
    job.calls.push_back(std::move(g.call));
  }
  std::stable_sort(job.calls.begin(), job.calls.end(),
                   [](const Call& a, const Call& b) { return a.first_ns < b.first_ns; });
  if (!job.calls.empty()) job.begin_ns = job.calls.front().first_ns;
  return job;
}

std::vector<Row> table_one(const TracedJob& job) {
  std::map<std::pair<std::string, std::string>, Row> rows;  // by collective and site_key()
  std::map<std::pair<std::string, std::string>, std::map<int, uint64_t>> late;
  for (const Call& call : job.calls) {
    const std::pair<std::string, std::string> key = {call.collective, site_key(call.site)};
    Row& row = rows[key];
    row.collective = call.collective, row.site = call.site;
    const double message_us = job.alpha_us + job.beta_us_per_byte * call.mean_bytes;
    int64_t exit_ns = 0;
    for (const Part& part : call.parts) exit_ns = std::max(exit_ns, part.exit_ns);
    ++row.calls;
    row.mean_bytes += call.mean_bytes;
    row.message_us += message_us;
    row.average_factor += factor(mean_distance_ns(call), message_us);
    row.worst_factor += factor(static_cast<double>(call.last_ns - call.first_ns), message_us);
    row.spread_us += static_cast<double>(call.last_ns - call.first_ns) / 1e3;
    row.after_last_us += static_cast<double>(exit_ns - call.last_ns) / 1e3;
    if (call.last_ns > call.first_ns) ++late[key][call.late];
  }
  std::vector<Row> list;
  for (auto& [key, row] : rows) {
    const auto n = static_cast<double>(row.calls);
    row.mean_bytes /= n, row.message_us /= n, row.average_factor /= n, row.worst_factor /= n;
    row.spread_us /= n, row.after_last_us /= n;
    for (const auto& [rank, times] : late[key])
      if (times > row.late_calls) row.late_rank = rank, row.late_calls = times;
    list.push_back(row);
  }
  return list;
}

}  // namespace ibcoll::tracing
