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

constexpr int kFlags = 9, kStart = 22;  // fields of /proc/PID/stat
constexpr uint64_t kExiting = 0x4;      // PF_EXITING in the flags
constexpr auto kLookPeriod = std::chrono::seconds(1);

// 0: there is no such process.
uint64_t stat_field(int64_t pid, int number) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(file, text);
  const size_t name_end = text.rfind(')');  // of field 2
  if (name_end == std::string::npos) return 0;
  std::istringstream fields(text.substr(name_end + 1));
  std::string skipped;
  for (int field = 3; field < number; ++field) fields >> skipped;
  uint64_t value = 0;
  fields >> value;
  return value;
}

}  // namespace

ProcessId ProcessId::own() {
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  struct stat processes {};
  if (boot.empty() || ::stat("/proc/self/ns/pid", &processes) != 0) return {};
  const uint64_t machine = std::hash<std::string>{}(boot + std::to_string(processes.st_ino));
  return {machine == 0 ? 1 : machine, ::getpid(), stat_field(::getpid(), kStart)};
}

ProcessWatch::~ProcessWatch() {
  while (!handles_.empty()) remove_at(handles_.size() - 1);
}

void ProcessWatch::add(int rank, const ProcessId& id) {
  if (own_.machine == 0 || id.machine != own_.machine || id.pid == own_.pid) return;
  int handle = static_cast<int>(::syscall(SYS_pidfd_open, static_cast<pid_t>(id.pid), 0));
  if (handle < 0 && errno != ESRCH) return;  // no pidfds here: the network's own check has to do
  if (handle >= 0 && stat_field(id.pid, kStart) != id.start) {
    ::close(handle);
    handle = -1;
  }
  handles_.push_back({handle, POLLIN, 0});
  ranks_.push_back(rank);
  pids_.push_back(id.pid);
}

void ProcessWatch::remove_at(size_t i) {
  if (handles_[i].fd >= 0) ::close(handles_[i].fd);
  handles_[i] = handles_.back();
  handles_.pop_back();
  ranks_[i] = ranks_.back();
  ranks_.pop_back();
  pids_[i] = pids_.back();
  pids_.pop_back();
}

void ProcessWatch::remove(int rank) {
  const auto found = std::find(ranks_.begin(), ranks_.end(), rank);
  if (found != ranks_.end()) remove_at(static_cast<size_t>(found - ranks_.begin()));
}

std::vector<int> ProcessWatch::ended() {
  std::vector<int> result;
  if (handles_.empty()) return result;
  ::poll(handles_.data(), handles_.size(), 0);
  const auto now = std::chrono::steady_clock::now();
  const bool look = now >= next_look_;
  if (look) next_look_ = now + kLookPeriod;
  for (size_t i = handles_.size(); i-- > 0;) {
    const bool alive = handles_[i].fd >= 0 && handles_[i].revents == 0;
    if (alive && !(look && (stat_field(pids_[i], kFlags) & kExiting) != 0)) continue;
    result.push_back(ranks_[i]);
    remove_at(i);
  }
  return result;
}

}  // namespace ibcoll
