// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/types.h>

#include <array>
#include <string>

namespace ibcoll::run {

// The file to execute, or why there is none: exit code as of a shell (127 not found, 126 not executable) and text.
struct ProgramPath {
  std::string path;
  int exit_code = 0;
  std::string text;
};

// As execvp(3) searches: `name` with a slash is a path, else the folders of `search_path` (PATH). What is relative
// begins in `folder`; "": the current one.
ProgramPath find_program(const std::string& name, const std::string& search_path, const std::string& folder = "");

// The first bytes of a file: they distinguish a script without a #! line from a program that the kernel does not know.
struct FileBeginning {
  std::array<unsigned char, 256> bytes{};
  ssize_t size = 0;
  bool is_elf() const noexcept;
  bool is_text() const noexcept;  // no byte is 0
};
FileBeginning beginning_of(const std::string& path) noexcept;

// The answer when execve(2) of `path` failed with `reason`.
ProgramPath cannot_execute(const std::string& path, int reason);

}  // namespace ibcoll::run
