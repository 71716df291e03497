// SPDX-License-Identifier: BSD-3-Clause
// ibcoll_trace: when ranks arrived at their collectives, from the traces of a program. See docs/ibcoll_trace.md.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>
#include <string>

#include "tools/ibcoll_trace/output.h"

namespace ibcoll::tracing {
namespace {

struct Options {
  std::string path, format = "table", arrivals, html;
  double alpha_us = -1, bandwidth = -1;
  size_t served = 0;
};

int fail(const std::string& text, int status) {
  fmt::print(stderr, "ibcoll_trace: {}\n", text);
  return status;
}

bool put(std::FILE* file, const std::string& text) {
  return std::fwrite(text.data(), 1, text.size(), file) == text.size() && std::fflush(file) == 0;
}

int write_file(const char* option, const std::string& path, const std::string& text) {
  std::FILE* const file = std::fopen(path.c_str(), "w");
  if (!file) return fail(fmt::format("{}: cannot write {}: {}", option, path, std::strerror(errno)), 2);
  const bool written = put(file, text);
  const int reason = errno;
  if (std::fclose(file) == 0 && written) return 0;
  return fail(fmt::format("{}: cannot write {}: {}", option, path, std::strerror(written ? errno : reason)), 1);
}

int run(const Options& options) {
  if (options.served > 0 && options.format == "csv")
    return fail("--served: the rows of --format csv are no calls; take table or json", 2);
  Result<std::vector<RankTrace>> traces = read_traces(options.path);
  if (!traces.ok()) return fail(traces.status().text(), 2);
  const std::vector<std::string> problems = find_sources(traces.value());
  Result<Job> job = put_together(std::move(traces.value()));
  if (!job.ok()) return fail(job.status().text(), 2);
  job.value().problems = problems;
  if (options.alpha_us >= 0) job.value().alpha_us = options.alpha_us;
  if (options.bandwidth > 0) job.value().beta_us_per_byte = 1e-3 / options.bandwidth;
  if (!options.arrivals.empty())
    if (const int status = write_file("--arrivals", options.arrivals, arrivals(job.value()))) return status;
  if (!options.html.empty())
    if (const int status = write_file("--html", options.html, page(job.value()))) return status;
  if (!put(stdout, report(job.value(), options.format, options.served)))
    return fail(fmt::format("cannot write to standard output: {}", std::strerror(errno)), 1);
  return 0;
}

}  // namespace
}  // namespace ibcoll::tracing

int main(int argc, char** argv) {
  using namespace ibcoll::tracing;
  CLI::App app("Shows when ranks arrived at their collectives, from the traces that IBCOLL_TRACE made.");
  app.failure_message([](const CLI::App*, const CLI::Error& problem) {
    return fmt::format("ibcoll_trace: {}; see ibcoll_trace --help\n", problem.what());
  });
  Options options;
  app.add_option("TRACE", options.path, "FILE or folder, as IBCOLL_TRACE named it")->required()->type_name("");
  app.add_option("--format", options.format, "How to print: table, csv or json")
      ->check(CLI::IsMember({"table", "csv", "json"}))
      ->capture_default_str();
  app.add_option("--arrivals", options.arrivals, "Write the delays of all ranks, for ibcoll_perf --arrival file:OUT");
  app.add_option("--html", options.html, "Write a page with the calls on a time line");
  app.add_option("--served", options.served,
                 "Show this number of calls, those whose ranks arrived furthest apart, with the order in which each "
                 "rank served its peers")
      ->type_name("CALLS")
      ->check(CLI::Range(1, 1 << 24));
  app.add_option("--alpha", options.alpha_us, "Start-up time of a message, us (default: as the traced job timed it)")
      ->check(CLI::Range(0.001, 1e6));
  app.add_option("--bandwidth", options.bandwidth, "GB/s (default: as the traced job timed it)")
      ->check(CLI::Range(1e-3, 1e3));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& problem) {
    return app.exit(problem) == 0 ? 0 : 2;
  }
  try {
    return run(options);
  } catch (const std::bad_alloc&) {
    return fail("out of memory; trace fewer calls (IBCOLL_TRACE_CALLS)", 1);
  }
}
