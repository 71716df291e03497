// SPDX-License-Identifier: BSD-3-Clause
#include "tools/options/early_end.h"

#include <fmt/format.h>

#include <sstream>

#include "tools/options/output_file.h"

namespace ibcoll {

std::optional<EarlyEnd> parse_command_line(CLI::App& app, const char* tool, int argc, const char* const* argv) {
  app.failure_message([tool](const CLI::App*, const CLI::Error& problem) {
    return fmt::format("{}: {}; see {} --help\n", tool, problem.what(), tool);
  });
  try {
    app.parse(argc, argv);
    return {};
  } catch (const CLI::ParseError& problem) {
    std::ostringstream output, error;
    const int code = app.exit(problem, output, error);
    return EarlyEnd{code == 0 ? 0 : 2, output.str(), error.str()};
  }
}

int print(const EarlyEnd& end, const char* tool) {
  fmt::print(stderr, "{}", end.error);
  const std::string problem = print_all(end.output);
  if (problem.empty()) return end.status;
  fmt::print(stderr, "{}: {}\n", tool, problem);
  return 1;
}

}  // namespace ibcoll
