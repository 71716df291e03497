// SPDX-License-Identifier: BSD-3-Clause
// The output of a tool: a file, or standard output.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

#include "tools/options/temporary_file.h"

namespace ibcoll {

// A file that appears whole or not at all: it is written under another name, and commit() renames it. A device or a
// pipe is written directly.
class OutputFile {
 public:
  OutputFile() = default;
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  ~OutputFile();

  // "" or why not. An empty path: standard output.
  std::string open(const std::string& path);
  // A failure is kept for commit(), and nothing more is written.
  void write(std::string_view text);
  // All that was written, so that a long run can be watched. False: something was not written.
  bool flush();
  // "" or what failed. Once.
  std::string commit();

 private:
  void keep_error(bool failed);
  std::FILE* file_ = nullptr;
  std::string path_;
  TemporaryFile temporary_;
  int error_ = 0;
};

// Writes to standard output. "" or what failed.
std::string print_all(std::string_view text);

}  // namespace ibcoll
