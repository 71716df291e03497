// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/machine/process_watch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <functional>
#include <sstream>
#include <string>

#include "runtime/base/log.h"
#include "runtime/base/reserve.h"
#include "runtime/base/unique_fd.h"
#include "runtime/machine/descriptors.h"
#include "runtime/machine/topology.h"

namespace ibcoll {
namespace {

constexpr uint64_t kExiting = 0x4;  // PF_EXITING in the flags
constexpr auto kCheckPeriod = std::chrono::seconds(1);

// The content of /proc/PID/stat.
struct ProcessStat {
  int failure = 0;  // errno; of a process that has gone ESRCH or ENOENT, the latter also where others are hidden
  char state = 0;
  uint64_t flags = 0;
  int threads = 0;
  uint64_t start = 0;

  // The first thread may end before the others.
  bool ended() const { return (state == 'Z' || state == 'X') && threads <= 1; }
  bool exiting() const { return failure == 0 && (flags & kExiting) != 0; }
};

ProcessStat read_stat(const std::string& path) {
  ProcessStat stat;
  char text[1024] = {};
  const HighDescriptors high;
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const ssize_t length = file < 0 ? -1 : ::read(file, text, sizeof text - 1);
  stat.failure = length > 0 ? 0 : length == 0 ? ESRCH : errno;
  if (file >= 0) ::close(file);
  const char* const name_end = std::strrchr(text, ')');  // of field 2
  if (stat.failure != 0 || !name_end) return stat;
  std::istringstream fields(name_end + 1);
  std::string skipped;
  fields >> stat.state;  // field 3
  for (int field = 4; field < 9; ++field) fields >> skipped;
  fields >> stat.flags;
  for (int field = 10; field < 20; ++field) fields >> skipped;
  fields >> stat.threads >> skipped >> stat.start;
  return stat;
}

ProcessStat stat_of(int64_t pid) { return read_stat(fmt::format("/proc/{}/stat", pid)); }

// Where descriptors are short or processes are hidden, the kernel still answers whether a process has that PID.
bool is_unused(int64_t pid) { return ::kill(static_cast<pid_t>(pid), 0) != 0 && errno == ESRCH; }

// Every thread has begun to end; the first alone may do so in a process that lives on.
bool all_threads_exit(int64_t pid) {
  const HighDescriptors high;
  std::error_code failure;
  for (const auto& thread : std::filesystem::directory_iterator(fmt::format("/proc/{}/task", pid), failure)) {
    const ProcessStat stat = read_stat(thread.path() / "stat");
    const bool gone = stat.failure == ENOENT || stat.failure == ESRCH;
    if (!gone && !stat.exiting()) return false;
  }
  return !failure;
}

}  // namespace

ProcessId ProcessId::own() {
  const std::string boot = boot_id();
  struct stat processes {};
  if (boot.empty() || ::stat("/proc/self/ns/pid", &processes) != 0) return {0, ::getpid(), stat_of(::getpid()).start};
  const uint64_t machine = std::hash<std::string>{}(boot + std::to_string(processes.st_ino));
  return {machine == 0 ? 1 : machine, ::getpid(), stat_of(::getpid()).start};
}

std::optional<uint64_t> ProcessId::start_of(int64_t pid) {
  const ProcessStat stat = stat_of(pid);
  if (stat.failure == 0) return stat.ended() ? 0 : stat.start;
  if (is_unused(pid)) return 0;
  return std::nullopt;
}

ProcessWatch::~ProcessWatch() {
  while (!handles_.empty()) remove_at(handles_.size() - 1);
}

void ProcessWatch::add_if_local(int rank, const ProcessId& id) {
  if (own_.machine == 0 || id.machine != own_.machine) return;
  const Status status = or_no_memory([&] { return add(rank, id.pid, id.start); });
  if (!status.ok()) log(LogLevel::kWarning, "{}", status.text());
}

Status ProcessWatch::add(int rank, int64_t pid, uint64_t start) {
  const HighDescriptors high;
  int handle = static_cast<int>(::syscall(SYS_pidfd_open, static_cast<pid_t>(pid), 0));
  const int refusal = handle < 0 ? errno : 0;
  const ProcessStat stat = stat_of(pid);
  const bool another = stat.failure == 0 && start != 0 && stat.start != start;
  const bool unused = stat.failure != 0 && is_unused(pid);
  const bool gone = refusal == ESRCH || another || unused;
  if (handle < 0 && !gone && stat.failure != 0)
    return error(IBCOLL_ERR_SYSTEM,
                 "process {} of rank {} cannot be watched, its end would not be noticed: pidfd_open: {}; "
                 "/proc/{}/stat: {}; see ulimit -n, and whether /proc is there",
                 pid, rank, std::strerror(refusal), pid, std::strerror(stat.failure));
  if (handle >= 0 && gone) ::close(std::exchange(handle, -1));
  if (handle < 0 && !gone && method_ == "pidfd") {
    method_ = fmt::format("/proc/PID/stat, once a second (pidfd_open: {})", std::strerror(refusal));
    log(LogLevel::kInfo, "processes of this machine are watched by {}", method_);
  }
  UniqueFd held(handle);
  reserve_one(watched_);
  reserve_one(handles_);
  asked_.reserve(handles_.capacity());
  handles_.push_back({held.release(), POLLIN, 0});
  watched_.push_back({rank, pid, start, gone});
  return {};
}

void ProcessWatch::remove_at(size_t i) {
  if (handles_[i].fd >= 0) ::close(handles_[i].fd);
  handles_[i] = handles_.back();
  handles_.pop_back();
  watched_[i] = watched_.back();
  watched_.pop_back();
}

void ProcessWatch::remove(int rank) {
  const auto found = find(rank);
  if (found != watched_.end()) remove_at(static_cast<size_t>(found - watched_.begin()));
}

bool ProcessWatch::ended_by_proc(const Watched& process) const {
  const ProcessStat stat = stat_of(process.pid);
  if (stat.failure != 0) return is_unused(process.pid);
  if (process.start != 0 && stat.start != process.start) return true;
  if (until_ == Until::kEnding && stat.exiting()) return all_threads_exit(process.pid);
  return stat.ended();
}

std::vector<int> ProcessWatch::ended() {
  std::vector<int> result;
  if (handles_.empty()) return result;
  const bool polled = ::poll(handles_.data(), handles_.size(), 0) >= 0;  // not more than RLIMIT_NOFILE at once
  const auto now = std::chrono::steady_clock::now();
  const bool check = now >= next_check_;
  if (check) next_check_ = now + kCheckPeriod;
  for (size_t i = handles_.size(); i-- > 0;) {
    if (polled && (handles_[i].revents & POLLNVAL) != 0)
      handles_[i].fd = -1;  // the program closed a descriptor that was not its own
    const bool reported = polled && (handles_[i].revents & POLLIN) != 0;
    const bool by_proc = check && (until_ == Until::kEnding || handles_[i].fd < 0 || !polled);
    if (!watched_[i].gone && !reported && !(by_proc && ended_by_proc(watched_[i]))) continue;
    result.reserve(handles_.size());  // or nothing changes
    result.push_back(watched_[i].rank);
    remove_at(i);
  }
  return result;
}

std::vector<ProcessWatch::Watched>::const_iterator ProcessWatch::find(int rank) const {
  return std::find_if(watched_.begin(), watched_.end(), [=](const Watched& w) { return w.rank == rank; });
}

int ProcessWatch::first_ended(const std::vector<int>& ranks) {
  asked_.clear();
  for (const int rank : ranks) {
    const auto found = find(rank);
    if (found == watched_.end() || found->gone) return rank;
    asked_.push_back(handles_[static_cast<size_t>(found - watched_.begin())]);
    asked_.back().revents = 0;
  }
  const bool polled = ::poll(asked_.data(), asked_.size(), 0) >= 0;
  for (size_t i = 0; i < asked_.size(); ++i)
    if ((!polled || asked_[i].fd < 0 || asked_[i].revents != 0) && !alive(ranks[i])) return ranks[i];
  return -1;
}

bool ProcessWatch::alive(int rank) const {
  const auto found = find(rank);
  if (found == watched_.end() || found->gone) return false;
  pollfd handle = handles_[static_cast<size_t>(found - watched_.begin())];
  if (handle.fd >= 0 && ::poll(&handle, 1, 0) >= 0 && (handle.revents & POLLNVAL) == 0) return handle.revents == 0;
  return !ended_by_proc(*found);
}

}  // namespace ibcoll
