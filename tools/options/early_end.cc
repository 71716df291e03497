// SPDX-License-Identifier: BSD-3-Clause
#include "tools/options/early_end.h"

#include <fmt/format.h>

#include <span>
#include <sstream>
#include <string_view>

#include "tools/options/help.h"
#include "tools/options/output_file.h"

namespace ibcoll {

namespace {

// The first word that looks like an option and is none; "" where there is no such word.
std::string unknown_option(const CLI::App& app, std::span<const char* const> words) {
  for (const std::string_view word : words) {
    if (word == "--" || (app.get_prefix_command() && !word.starts_with('-'))) break;
    const std::string name(word.substr(0, word.find('=')));
    if (name.starts_with("--") && app.get_option_no_throw(name) == nullptr) return name;
  }
  return {};
}

}  // namespace

std::optional<EarlyEnd> parse_command_line(CLI::App& app, const char* tool, int argc, const char* const* argv) {
  app.failure_message([tool](const CLI::App*, const CLI::Error& problem) {
    return fmt::format("{}: {}; see {} --help\n", tool, problem.what(), tool);
  });
  try {
    app.parse(argc, argv);
    return {};
  } catch (const CLI::ParseError& problem) {
    std::ostringstream output, error;
    // Before what CLI11 misses because of it.
    const std::string unknown = unknown_option(app, std::span(argv + 1, argc > 0 ? argc - 1 : 0));
    if (!unknown.empty() && problem.get_exit_code() != 0)
      return EarlyEnd{
          2, "",
          fmt::format("{}: there is no option {}{}; see {} --help\n", tool, unknown, did_you_mean(app, unknown), tool)};
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
