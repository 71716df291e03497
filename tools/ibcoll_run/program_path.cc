// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_run/program_path.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace ibcoll::run {
namespace {

// 0, or the errno of why not.
int why_not_executable(const std::string& path) {
  struct stat about {};
  if (::stat(path.c_str(), &about) != 0) return errno;
  if (S_ISDIR(about.st_mode)) return EISDIR;
  return ::access(path.c_str(), X_OK) == 0 ? 0 : errno;
}

}  // namespace

ProgramPath cannot_execute(const std::string& path, int reason) {
  if (reason == ENOENT || reason == ENOTDIR) {
    // The file itself may be there: then its interpreter (#! line or ELF loader) is not.
    const bool there = ::access(path.c_str(), F_OK) == 0;
    return {path, 127, fmt::format("{}: {}", path, there ? "its interpreter is not there" : "no such file")};
  }
  return {path, 126, fmt::format("{}: cannot be executed: {}", path, std::strerror(reason))};
}

ProgramPath find_program(const std::string& name, const std::string& search_path) {
  if (name.find('/') != std::string::npos) {
    const int reason = why_not_executable(name);
    return reason == 0 ? ProgramPath{name, 0, ""} : cannot_execute(name, reason);
  }
  ProgramPath best{name, 127, fmt::format("{}: not found in PATH ({})", name, search_path)};
  for (size_t begin = 0; begin <= search_path.size();) {
    const size_t end = std::min(search_path.find(':', begin), search_path.size());
    std::string folder = search_path.substr(begin, end - begin);
    begin = end + 1;
    const std::string path = (folder.empty() ? "." : folder) + "/" + name;
    const int reason = why_not_executable(path);
    if (reason == 0) return {path, 0, ""};
    if (reason == EACCES) best = cannot_execute(path, reason);
  }
  return best;
}

}  // namespace ibcoll::run
