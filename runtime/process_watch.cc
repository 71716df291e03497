// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/process_watch.h"

#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>

namespace ibcoll {
namespace {

// Field 22 of /proc/PID/stat; 0: there is no such process.
uint64_t start_time(int64_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(file, text);
  const size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return 0;
  std::istringstream fields(text.substr(name_end + 1));
  std::string skipped;
  constexpr int kFieldsBetween = 19;  // from field 3 on
  for (int i = 0; i < kFieldsBetween; ++i) fields >> skipped;
  uint64_t start = 0;
  fields >> start;
  return start;
}

}  // namespace

ProcessId ProcessId::own() {
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  struct stat processes {};
  if (boot.empty() || ::stat("/proc/self/ns/pid", &processes) != 0) return {};
  const uint64_t machine = std::hash<std::string>{}(boot + std::to_string(processes.st_ino));
  return {machine == 0 ? 1 : machine, ::getpid(), start_time(::getpid())};
}

ProcessWatch::~ProcessWatch() {
  while (!handles_.empty()) remove_at(handles_.size() - 1);
}

void ProcessWatch::add(int rank, const ProcessId& id) {
  if (own_.machine == 0 || id.machine != own_.machine || id.pid == own_.pid) return;
  int handle = static_cast<int>(::syscall(SYS_pidfd_open, static_cast<pid_t>(id.pid), 0));
  if (handle < 0 && errno != ESRCH) return;  // no pidfds here: the network's own check has to do
  if (handle >= 0 && start_time(id.pid) != id.start) {
    ::close(handle);
    handle = -1;
  }
  handles_.push_back({handle, POLLIN, 0});
  ranks_.push_back(rank);
}

void ProcessWatch::remove_at(size_t i) {
  if (handles_[i].fd >= 0) ::close(handles_[i].fd);
  handles_[i] = handles_.back();
  handles_.pop_back();
  ranks_[i] = ranks_.back();
  ranks_.pop_back();
}

void ProcessWatch::remove(int rank) {
  const auto found = std::find(ranks_.begin(), ranks_.end(), rank);
  if (found != ranks_.end()) remove_at(static_cast<size_t>(found - ranks_.begin()));
}

std::vector<int> ProcessWatch::ended() {
  std::vector<int> result;
  if (handles_.empty()) return result;
  ::poll(handles_.data(), handles_.size(), 0);
  for (size_t i = handles_.size(); i-- > 0;) {
    if (handles_[i].fd >= 0 && handles_[i].revents == 0) continue;
    result.push_back(ranks_[i]);
    remove_at(i);
  }
  return result;
}

}  // namespace ibcoll
