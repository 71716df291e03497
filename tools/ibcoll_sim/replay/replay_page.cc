// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "tools/ibcoll_sim/replay/replay.h"
#include "tools/traces/time_line.h"

namespace ibcoll::simulator {
namespace {

tracing::Call call_of(const Recording& recording, const RecordedCall& call, const std::string& algorithm, double bytes,
                      const std::vector<Moments>& moments) {
  const CallKind& kind = recording.kinds[call.kind];
  tracing::Call made;
  made.collective = kind.row().name, made.algorithm = algorithm;
  made.site.text = recording.sites[call.site].text;
  made.mean_bytes = bytes;
  const std::vector<int>& ranks = recording.teams[static_cast<size_t>(kind.team)];
  made.first_ns = INT64_MAX;
  for (size_t member = 0; member < ranks.size(); ++member) {
    const Moments& at = moments[call.first + member];
    made.parts.push_back({ranks[member], at.arrival, at.exit, static_cast<uint64_t>(bytes), {}, {}});
    made.first_ns = std::min(made.first_ns, at.arrival);
    if (at.arrival > made.last_ns || member == 0) made.last_ns = at.arrival, made.late = ranks[member];
  }
  return made;
}

tracing::TracedJob job_of(const Recording& recording, const std::vector<Moments>& moments, const Variant& variant) {
  tracing::TracedJob job;
  job.ranks = recording.ranks;
  std::vector<double> blocks;
  for (const CallKind& kind : recording.kinds) blocks.push_back(mean_block(recording, kind));
  for (const RecordedCall& call : recording.calls)
    job.calls.push_back(
        call_of(recording, call,
                variant.algorithms.empty() ? recording.kinds[call.kind].algorithm : variant.algorithms[call.site],
                blocks[call.kind], moments));
  return job;
}

constexpr int kAbove = 190, kRow = 34;  // pixels of a time line; a row has so many at most

// The same calls of another run.
std::vector<tracing::PageCall> same_calls(const tracing::TracedJob& from, const std::vector<tracing::PageCall>& shown,
                                          const tracing::TracedJob& to) {
  std::vector<tracing::PageCall> all;
  for (const tracing::PageCall& one : shown)
    all.push_back({&to.calls[static_cast<size_t>(one.call - from.calls.data())]});
  return all;
}

}  // namespace

void write_replay_page(const Options& options, const ReplayResult& result, OutputFile& page) {
  Options table = options;
  table.format = Options::Format::kTable;
  const Variant& played = result.variants[result.drawn];
  const bool has_recorded = !result.recording.moments.empty();  // not of added ranks
  const double least_us = 1e6 * std::max(played.times.total, has_recorded ? result.variants.front().times.total : 0);
  page.write(tracing::page_head() + "<pre>" + tracing::html_text(replay_report(table, result)) + "</pre>\n");
  for (const std::string& note : result.notes) page.write("<p>" + tracing::html_text(note) + "</p>\n");
  const auto add = [&](const std::string& name, const tracing::TracedJob& job,
                       const std::vector<tracing::PageCall>& shown) {
    page.write(fmt::format(R"(<h3>{0}</h3><iframe style="width: 100%; height: {1}px; border: 0" title="{0}" srcdoc=")",
                           tracing::html_text(name),
                           kAbove + std::min(kRow * job.ranks, std::max(600, 8 * job.ranks))));
    page.write(tracing::html_text(tracing::page_head()));
    tracing::write_time_line(job, shown, least_us,
                             [&](std::string_view text) { page.write(tracing::html_text(std::string(text))); });
    page.write("\"></iframe>\n");
  };
  const tracing::TracedJob replayed = job_of(result.recording, result.moments, played);
  std::vector<tracing::PageCall> shown;
  if (has_recorded) {
    const tracing::TracedJob recorded = job_of(result.recording, result.recording.moments, result.variants.front());
    const std::vector<tracing::PageCall> calls = tracing::page_calls(recorded);
    page.write("<p>" + tracing::html_text(tracing::left_out(recorded, calls)) + "</p>\n");
    add("recorded", recorded, calls);
    shown = same_calls(recorded, calls, replayed);
  } else {
    shown = tracing::page_calls(replayed);
  }
  add(played.name, replayed, shown);
  page.write("</body></html>\n");
}

}  // namespace ibcoll::simulator
