// SPDX-License-Identifier: BSD-3-Clause
// Addresses of code as function, file and line, by the debug information of the programs.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

struct Dwfl;
struct Dwfl_Module;

namespace ibcoll::tracing {

struct SourceLine {
  std::string function;      // "": unknown
  std::string file;          // its path when it was compiled; "": there is no debug information
  int line = 0;              // 0: unknown
  uint64_t in_function = 0;  // without a file: distance from the beginning of the function, bytes
};

// The name of a function of C++ as its source has it; others as they are.
std::string plain_name(const std::string& symbol);

// Files are read once.
class SourceLines {
 public:
  SourceLines() = default;
  SourceLines(const SourceLines&) = delete;
  SourceLines& operator=(const SourceLines&) = delete;
  ~SourceLines();
  // The call that returns to `offset` in a program or shared library; all unknown where the file cannot be read or is
  // not the one that ran. Of functions that were inlined there, the innermost one.
  SourceLine find(const std::string& module, const std::string& build_id, uint64_t offset);
  // One line on each module that could not be used.
  const std::vector<std::string>& problems() const { return problems_; }

 private:
  struct Module {
    Dwfl* session = nullptr;
    Dwfl_Module* module = nullptr;
  };
  Module open(const std::string& path, const std::string& build_id);
  std::map<std::pair<std::string, std::string>, Module> modules_;  // by path and build id
  std::vector<std::string> problems_;
};

}  // namespace ibcoll::tracing
