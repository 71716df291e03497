// SPDX-License-Identifier: BSD-3-Clause
#include "perf/apps/layer/program.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>

#include "perf/apps/layer/report.h"

namespace apps {
namespace {

// Exit status: what was printed is where it belongs.
int output_written() {
  if (std::fflush(stdout) == 0) return 0;
  fmt::print(stderr, "{}: standard output: {}\n", program_invocation_short_name, std::strerror(errno));
  return 1;
}

int run(Application& application, int argc, char** argv) {
  AppJob job;
  const Error error = job.open();
  if (!error.empty()) {
    fmt::print(stderr, "{}: {}\n", program_invocation_short_name, error);
    return 1;
  }
  CLI::App options(application.about(), program_invocation_short_name);
  options.failure_message([](const CLI::App*, const CLI::Error& wrong) {
    const char* name = program_invocation_short_name;
    return fmt::format("{}: {}; see {} --help\n", name, wrong.what(), name);
  });
  bool csv = false;
  application.add_options(options);
  options.add_flag("--csv", csv, "print the table for programs: comma-separated, times in microseconds");
  try {
    options.parse(argc, argv);
  } catch (const CLI::ParseError& wrong) {
    // All ranks got the same arguments; one of them prints it.
    if (job.rank() == 0) options.exit(wrong);
    return wrong.get_exit_code() == 0 ? output_written() : 2;
  }
  Report report;
  if (!application.run(job) || !job.agree(make_report(job, report))) return 1;
  const std::string details = application.details(job);
  if (job.rank() == 0) {
    fmt::print("{}", csv ? csv_of(report) : details + text_of(report, application.title(), job.size()));
  }
  return output_written();
}

}  // namespace

int run_application(Application& application, int argc, char** argv) {
  try {
    return run(application, argc, argv);
  } catch (const std::exception& unexpected) {
    fmt::print(stderr, "{}: {}\n", program_invocation_short_name, unexpected.what());
    return 1;
  }
}

}  // namespace apps
