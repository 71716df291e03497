// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace ibcoll::run {

// The file to execute, or why there is none: exit code as of a shell (127 not found, 126 not executable) and text.
struct ProgramPath {
  std::string path;
  int exit_code = 0;
  std::string text;
};

// As execvp(3) searches: `name` with a slash is a path, else the folders of `search_path` (PATH).
ProgramPath find_program(const std::string& name, const std::string& search_path);

// What to say when execve(2) of `path` failed with `reason`.
ProgramPath cannot_execute(const std::string& path, int reason);

}  // namespace ibcoll::run
