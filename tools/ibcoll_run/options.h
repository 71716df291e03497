// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/status.h"

namespace ibcoll::run {

// One program of the command line, which may name several: -n 1 ./manager : -n 8 ./worker
struct ProgramOptions {
  std::optional<int> ranks;
  std::string folder;                // working directory; "": the launcher's
  std::vector<std::string> exports;  // NAME or NAME=VALUE
  std::vector<std::string> program;  // with arguments
};

// The command line of ibcoll_run.
struct Options {
  int nodes = 0;                // emulated nodes; 0: none
  std::optional<int> per_node;  // ranks on each host, or on each emulated node
  std::string map_by = "slot";  // or "node"
  bool oversubscribe = false;   // hosts take more ranks than they have slots
  std::string bind_to;          // "none", "core", "numa"; "": cores where the job fills the machine
  std::optional<int> cpus_per_rank;
  bool report_bindings = false;
  std::string hosts;
  std::string hostfile;
  std::string rsh;
  std::string net;
  bool rdma_in_memory = false;
  double timeout = 0;             // seconds; 0: none
  std::optional<int> keep_going;  // the fewest ranks that go on after deaths; none: a death ends the job
  bool tag_output = false;
  std::optional<bool> pty;  // none: where standard output is a terminal
  std::string address;      // to listen on for ranks on other hosts
  bool allow_public = false;
  bool agent = false;
  std::vector<ProgramOptions> programs;

  // The ranks that -n gives, of all programs together; none: no -n is there.
  std::optional<int> ranks() const;
};

// Either options, or what to print and the exit code: help and version (0), a mistake (2).
struct ParsedOptions {
  Options options;
  bool stop = false;
  int exit_code = 0;
  std::string text;
};
ParsedOptions parse_options(int argc, const char* const* argv);

// Parses the value of --timeout: a number above 0 and finite.
Result<double> parse_seconds(std::string_view text);

// -x NAME[=VALUE] as NAME=VALUE; a NAME alone takes its value from the environment (INVALID_ARGUMENT: not set).
Result<std::vector<std::string>> exported_variables(const std::vector<std::string>& exports);

}  // namespace ibcoll::run
