// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_run/process_scan.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace ibcoll::run {
namespace {

std::string content_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::ostringstream content;
  content << file.rdbuf();
  return content.str();
}

}  // namespace

pid_t group_in_stat(std::string_view stat) {
  // "PID (NAME) STATE PARENT GROUP ...", where NAME may hold anything, brackets too.
  const size_t close = stat.rfind(')');
  if (close == std::string_view::npos) return 0;
  std::istringstream fields{std::string(stat.substr(close + 1))};
  char state = 0;
  pid_t parent = 0;
  pid_t group = 0;
  return fields >> state >> parent >> group ? group : 0;
}

bool catches(std::string_view status, int signal) {
  constexpr std::string_view kLabel = "\nSigCgt:\t";
  const size_t at = status.find(kLabel);
  if (at == std::string_view::npos) return false;
  uint64_t mask = 0;
  const std::string_view digits = status.substr(at + kLabel.size());
  std::from_chars(digits.data(), digits.data() + digits.size(), mask, 16);
  return (mask >> (signal - 1) & 1) != 0;
}

std::vector<pid_t> processes_that_catch(int signal, const std::vector<pid_t>& groups) {
  std::vector<pid_t> found;
  std::error_code failed;
  for (std::filesystem::directory_iterator entry("/proc", failed), end; !failed && entry != end;
       entry.increment(failed)) {
    const std::string name = entry->path().filename();
    pid_t pid = 0;
    const auto [rest, reason] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (reason != std::errc() || rest != name.data() + name.size()) continue;
    const pid_t group = group_in_stat(content_of(entry->path() / "stat"));
    if (std::find(groups.begin(), groups.end(), group) == groups.end()) continue;
    if (catches(content_of(entry->path() / "status"), signal)) found.push_back(pid);
  }
  return found;
}

}  // namespace ibcoll::run
