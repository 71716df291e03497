// SPDX-License-Identifier: BSD-3-Clause
// Command lines of the tools: why a program ends before it begins.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

namespace ibcoll {

// Help and version (0), a mistake (2); and what goes to standard output and error.
struct EarlyEnd {
  int status = 0;
  std::string output, error;
};

// Parses the command line of the tool of this name, whose options `app` has.
std::optional<EarlyEnd> parse_command_line(CLI::App& app, const char* tool, int argc, const char* const* argv);

// Prints both. The exit status: 1 where standard output takes no more.
int print(const EarlyEnd& end, const char* tool);

}  // namespace ibcoll
