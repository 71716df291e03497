// SPDX-License-Identifier: BSD-3-Clause
// Files, line by line: no more than a line of them is in memory.
#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "tools/traces/lines.h"
#include "tools/traces/printable.h"
#include "tools/traces/trace.h"

namespace ibcoll::tracing {
namespace {

constexpr int kMostLookedFor = 1024;  // files, for one that can be read

Status wrong(const std::string& path, uint64_t line, const std::string& what) {
  return error(IBCOLL_ERR_INVALID_ARGUMENT, "{}: line {}: {}", printable(path), line, printable(what));
}

// The lines between the first one and the calls.
Status read_lists(std::ifstream& file, const LineCounts& follow, RankTrace& trace) {
  std::string line;
  uint64_t at = 1, elements = 0;
  const auto read = [&](uint64_t count, const char* what, auto take) -> Status {
    for (uint64_t i = 1; i <= count && std::getline(file, line) && !file.eof(); ++i) {
      ++at;
      if (!take(line))
        return wrong(trace.path, at, fmt::format("{} {} of {} is malformed: '{}'", what, i, count, line.substr(0, 80)));
      if (elements > kMostElements)
        return wrong(trace.path, at,
                     fmt::format("the lists of teams and sizes have more than {} elements: no rank writes so many",
                                 kMostElements));
    }
    return {};
  };
  Status status =
      read(follow.sites, "call site", [&](auto& text) { return read_site(text, trace.sites.emplace_back()); });
  if (status.ok()) status = read(follow.teams, "team", [&](auto& text) { return read_team(text, trace, elements); });
  if (status.ok())
    status = read(follow.counts, "list of sizes", [&](auto& text) { return read_counts(text, trace, elements); });
  return status;
}

Status read_records(std::ifstream& file, const LineCounts& follow, const ReadOptions& options, RankTrace& trace) {
  const uint64_t above = follow.sites + follow.teams + follow.counts + 1;  // lines above the records
  const uint64_t calls = follow.calls;
  const std::string& path = trace.path;
  std::string line;
  for (uint64_t i = 1; std::getline(file, line) && line != "end"; ++i) {
    Record record;
    if (i > calls) return wrong(path, above + i, fmt::format("record {} of {}: one too many", i, calls));
    // The end of a file without a newline may be half a record.
    if (file.eof()) return wrong(path, above + i, fmt::format("record {} of {} is cut off", i, calls));
    if (!read_record(line, trace, options.messages, record))
      return wrong(path, above + i, fmt::format("record {} of {} is malformed: '{}'", i, calls, line.substr(0, 80)));
    trace.records.push_back(std::move(record));
  }
  if (trace.records.size() != calls || line != "end")
    return wrong(path, above + trace.records.size() + 1,
                 fmt::format("the trace ends after record {} of {}: it was cut off", trace.records.size(), calls));
  if (std::getline(file, line)) return wrong(path, above + calls + 2, "the file has more lines than calls");
  return {};
}

// `trace` has what was read before a failure. Without its header it has version 0.
Status read_one(const std::string& path, const ReadOptions& options, RankTrace& trace) {
  trace.path = path;
  std::ifstream file(path);
  if (!file) return error(IBCOLL_ERR_INVALID_ARGUMENT, "{}: {}", path, std::strerror(errno));
  std::string line;
  if (!std::getline(file, line))
    return wrong(path, 1,
                 "the trace is empty: its rank has not ended its context (ibcoll_context_destroy) yet, or never did");
  LineCounts follow;
  if (const std::string problem = read_header(line, trace, follow); !problem.empty()) {
    trace.version = 0;
    return wrong(path, 1, problem);
  }
  if (Status status = read_lists(file, follow, trace); !status.ok()) return status;
  return read_records(file, follow, options, trace);
}

// The trace is of this rank, and of the same job as `first`.
Status fits_to(const RankTrace& trace, int rank, const RankTrace& first) {
  if (trace.rank != rank)
    return wrong(trace.path, 1, fmt::format("this is the trace of rank {}, not of rank {}", trace.rank, rank));
  if (trace.job == first.job && trace.ranks == first.ranks && (trace.version >= 5) == (first.version >= 5)) return {};
  return wrong(trace.path, 1,
               fmt::format("job {} of {} ranks, but {} is of job {} of {} ranks: traces of two jobs are mixed",
                           trace.job, trace.ranks, first.path, first.job, first.ranks));
}

RankTrace without_records(std::string path, int rank) {
  RankTrace trace;
  trace.path = std::move(path);
  trace.rank = rank;
  return trace;
}

}  // namespace

Result<std::vector<RankTrace>> read_traces(const std::string& path, const ReadOptions& options) {
  std::error_code problem;
  const std::string base = std::filesystem::is_directory(path, problem) ? path + "/trace" : path;
  std::vector<RankTrace> traces;
  int first = -1;  // of those that were read
  Status why;
  for (int rank = 0; first < 0 ? rank < kMostLookedFor : rank < traces[static_cast<size_t>(first)].ranks; ++rank) {
    const std::string name = fmt::format("{}.{}", base, rank);
    RankTrace trace;
    Status status = read_one(name, options, trace);
    const bool usable = trace.version > 0;
    if (usable && (status.ok() || options.left_out))
      if (Status other = fits_to(trace, rank, first < 0 ? trace : traces[static_cast<size_t>(first)]); !other.ok())
        trace = without_records(name, rank), status = std::move(other);
    if (!status.ok() && !options.left_out) return status;
    if (trace.version > 0 && first < 0) first = rank;
    if (!status.ok()) options.left_out->push_back(status.text());
    if (!status.ok() && why.ok()) why = status;
    if (trace.version == 0) trace = without_records(name, rank);
    traces.push_back(std::move(trace));
  }
  if (first < 0) return why;
  return traces;
}

}  // namespace ibcoll::tracing
