// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/status.h"

namespace ibcoll::run {

// The command line of ibcoll_run.
struct Options {
  std::optional<int> ranks;
  int nodes = 0;  // emulated nodes; 0: none
  std::string hosts;
  std::string hostfile;
  std::string rsh;
  std::string net;
  double timeout = 0;  // seconds; 0: none
  bool tag_output = false;
  bool no_bind = false;
  std::string address;  // to listen on for ranks on other hosts
  bool allow_public = false;
  std::vector<std::string> exports;  // NAME or NAME=VALUE
  bool agent = false;
  std::vector<std::string> program;
};

// Either options, or what to print and the exit code: help and version (0), a mistake (2).
struct ParsedOptions {
  Options options;
  bool stop = false;
  int exit_code = 0;
  std::string text;
};
ParsedOptions parse_options(int argc, const char* const* argv);

// What --timeout takes: a number above 0 and finite.
Result<double> parse_seconds(std::string_view text);

// -x NAME[=VALUE] as NAME=VALUE; a NAME alone takes its value from the environment (INVALID_ARGUMENT: not set).
Result<std::vector<std::string>> exported_variables(const std::vector<std::string>& exports);

}  // namespace ibcoll::run
