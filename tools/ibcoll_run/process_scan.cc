// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_run/process_scan.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

namespace ibcoll::run {
namespace {

std::string content_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::ostringstream content;
  content << file.rdbuf();
  return content.str();
}

ProcessStat stat_of(pid_t pid) { return parse_stat(content_of(fmt::format("/proc/{}/stat", pid))); }

bool catches_now(pid_t pid, int signal) { return catches(content_of(fmt::format("/proc/{}/status", pid)), signal); }

bool is_stopped(char state) { return state == 'T' || state == 't'; }

// A stopped process handles the signal before it does anything else. One that does not stop, as in a call that cannot
// be interrupted, gets no signal.
void signal_while_stopped(pid_t pid, const ProcessStat& before, int signal) {
  constexpr auto kStopTimeout = std::chrono::milliseconds(100);
  const bool by_us = !is_stopped(before.state);
  if (by_us && ::kill(pid, SIGSTOP) != 0) return;
  const auto deadline = std::chrono::steady_clock::now() + kStopTimeout;
  ProcessStat now = stat_of(pid);
  while (!is_stopped(now.state) && now.group == before.group && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::microseconds(20));
    now = stat_of(pid);
  }
  if (is_stopped(now.state) && catches_now(pid, signal)) ::kill(pid, signal);
  if (by_us) ::kill(pid, SIGCONT);
}

}  // namespace

ProcessStat parse_stat(std::string_view stat) {
  // "PID (NAME) STATE PARENT GROUP ...", where NAME may hold anything, brackets too.
  const size_t close = stat.rfind(')');
  if (close == std::string_view::npos) return {};
  std::istringstream fields{std::string(stat.substr(close + 1))};
  char state = 0;
  pid_t parent = 0;
  pid_t group = 0;
  return fields >> state >> parent >> group ? ProcessStat{group, state} : ProcessStat{};
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

void signal_those_that_catch(int signal, const std::vector<pid_t>& groups) {
  std::error_code failed;
  for (std::filesystem::directory_iterator entry("/proc", failed), end; !failed && entry != end;
       entry.increment(failed)) {
    const std::string name = entry->path().filename();
    pid_t pid = 0;
    const auto [rest, reason] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (reason != std::errc() || rest != name.data() + name.size()) continue;
    const ProcessStat about = stat_of(pid);
    if (std::find(groups.begin(), groups.end(), about.group) == groups.end() || !catches_now(pid, signal)) continue;
    signal_while_stopped(pid, about, signal);
  }
}

}  // namespace ibcoll::run
