// SPDX-License-Identifier: BSD-3-Clause
// ibcoll_trace: when ranks arrived at their collectives, from the traces of a program. See docs/ibcoll_trace.md.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <new>
#include <string>

#include "runtime/base/low_descriptors.h"
#include "tools/ibcoll_trace/output.h"
#include "tools/options/early_end.h"
#include "tools/options/help.h"
#include "tools/options/not_nan.h"
#include "tools/options/output_file.h"

namespace ibcoll::tracing {
namespace {

struct Options {
  std::string path, format = "table", arrivals, html, time_independent;
  double alpha_us = -1, bandwidth = -1;
  size_t served = 0;
};

int fail(const std::string& text, int status) {
  fmt::print(stderr, "ibcoll_trace: {}\n", text);
  return status;
}

// A file that an option names.
struct Written {
  const char* option;
  const std::string& path;
  OutputFile file = {};
};

std::string open(Written& written) {
  if (written.path.empty()) return {};
  const std::string problem = written.file.open(written.path);
  return problem.empty() ? problem : fmt::format("{}: {}", written.option, problem);
}

std::string commit(Written& written) {
  const std::string problem = written.file.commit();
  return problem.empty() ? problem : fmt::format("{}: {}", written.option, problem);
}

std::string write_files(const TracedJob& job, Written& delays, Written& html) {
  if (!delays.path.empty()) {
    write_arrivals(job, delays.file);
    if (std::string problem = commit(delays); !problem.empty()) return problem;
  }
  if (html.path.empty()) return {};
  const std::vector<PageCall> shown = page_calls(job);
  if (const std::string note = left_out(job, shown); !note.empty()) fmt::print(stderr, "ibcoll_trace: {}\n", note);
  write_page(job, shown, html.file);
  return commit(html);
}

int run(const Options& options) {
  if (options.served > 0 && options.format == "csv")
    return fail("--served: the rows of --format csv are no calls; take table or json", 2);
  Written delays{"--arrivals", options.arrivals}, html{"--html", options.html};
  for (Written* const one : {&delays, &html})
    if (const std::string problem = open(*one); !problem.empty()) return fail(problem, 2);
  Result<std::vector<RankTrace>> traces = read_traces(options.path);
  if (!traces.ok()) return fail(traces.status().text(), 2);
  if (!options.time_independent.empty()) {
    const Result<std::string> note = write_time_independent(traces.value(), options.time_independent);
    if (!note.ok()) return fail(note.status().text(), note.status().code() == IBCOLL_ERR_INVALID_ARGUMENT ? 2 : 1);
    if (!note.value().empty()) fail(note.value(), 0);
  }
  const std::vector<std::string> problems = find_sources(traces.value());
  Result<TracedJob> job = put_together(std::move(traces.value()));
  if (!job.ok()) return fail(job.status().text(), 2);
  job.value().problems = problems;
  if (options.alpha_us >= 0) job.value().alpha_us = options.alpha_us;
  if (options.bandwidth > 0) job.value().beta_us_per_byte = 1e-3 / options.bandwidth;
  if (const std::string problem = write_files(job.value(), delays, html); !problem.empty()) return fail(problem, 1);
  const std::string problem = print_all(report(job.value(), options.format, options.served));
  if (!problem.empty()) return fail(problem, 1);
  return 0;
}

}  // namespace
}  // namespace ibcoll::tracing

int main(int argc, char** argv) {
  ibcoll::occupy_low_descriptors();
  using namespace ibcoll::tracing;
  CLI::App app("Shows when ranks arrived at their collectives, from the traces that IBCOLL_TRACE made.");
  ibcoll::give_help(app,
                    "  IBCOLL_TRACE=t ibcoll_run -n 4 ./program && ibcoll_trace t\n"
                    "  ibcoll_trace t --html t.html      a time line, for a browser\n"
                    "  ibcoll_trace t --served 3         whom each rank served first\n");
  Options options;
  app.add_option("TRACE", options.path, "FILE or folder, as IBCOLL_TRACE named it")->required()->type_name("");
  app.add_option("--format", options.format, "How to print: table, csv or json")
      ->check(CLI::IsMember({"table", "csv", "json"}))
      ->capture_default_str();
  app.add_option("--arrivals", options.arrivals, "Write the delays of all ranks, for ibcoll_perf --arrival file:OUT");
  app.add_option("--html", options.html, "Write a page with the calls on a time line");
  app.add_option("--ti", options.time_independent, "Write time-independent traces for SimGrid's replay to this folder")
      ->type_name("FOLDER");
  app.add_option("--served", options.served,
                 "Show this number of calls, those whose ranks arrived furthest apart, with the order in which each "
                 "rank served its peers")
      ->type_name("CALLS")
      ->check(CLI::Range(1, 1 << 24));
  app.add_option("--alpha", options.alpha_us, "Start-up time of a message, us (default: as the traced job timed it)")
      ->check(CLI::Range(0.001, 1e6))
      ->check(ibcoll::not_nan());
  app.add_option("--bandwidth", options.bandwidth, "GB/s (default: as the traced job timed it)")
      ->check(CLI::Range(1e-3, 1e3))
      ->check(ibcoll::not_nan());
  if (const auto end = ibcoll::parse_command_line(app, "ibcoll_trace", argc, argv)) return print(*end, "ibcoll_trace");
  try {
    return run(options);
  } catch (const std::bad_alloc&) {
    return fail("out of memory; trace fewer calls (IBCOLL_TRACE_CALLS)", 1);
  }
}
