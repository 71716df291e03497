// SPDX-License-Identifier: BSD-3-Clause
#include "tests/multiprocess/fork_job.h"

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "tests/multiprocess/scenario.h"

namespace ibcoll::multiprocess {
namespace {

constexpr uint64_t kBroken = ~uint64_t{0};

bool write_all(int socket, const void* data, size_t bytes) {
  const auto* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t written = ::send(socket, at, bytes, MSG_NOSIGNAL);
    if (written <= 0) return false;
    at += written;
    bytes -= static_cast<size_t>(written);
  }
  return true;
}

bool read_all(int socket, void* data, size_t bytes) {
  auto* at = static_cast<char*>(data);
  while (bytes > 0) {
    const ssize_t got = ::recv(socket, at, bytes, 0);
    if (got <= 0) return false;
    at += got;
    bytes -= static_cast<size_t>(got);
  }
  return true;
}

// ibcoll_bootstrap_t: `user` points to the socket. Length and data go to the parent; all data, or kBroken, come back.
int allgather(void* user, const void* send, void* recv, size_t bytes) {
  const int socket = *static_cast<int*>(user);
  const uint64_t length = bytes;
  uint64_t total = kBroken;
  if (!write_all(socket, &length, sizeof length) || !write_all(socket, send, bytes)) return 1;
  if (!read_all(socket, &total, sizeof total) || total == kBroken) return 2;
  return read_all(socket, recv, total) ? 0 : 3;
}

}  // namespace

bool ForkJob::can_emulate_nodes() {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(::unshare(CLONE_NEWUTS) == 0 && ::sethostname("n", 1) == 0 ? 0 : 1);
  int status = 1;
  return ::waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

void ForkJob::enter_node(int rank) const {
  if (nodes_ == 1 || machines_ != nullptr) return;
  const std::string name = fmt::format("ibcoll-node-{}", node_of(rank));
  if (::unshare(CLONE_NEWUTS) != 0 || ::sethostname(name.data(), name.size()) != 0) ::_exit(98);
}

void ForkJob::become_rank(int rank, int socket, const std::function<int(ForkedRank&)>& body) const {
  for (const Process& other : processes_) ::close(other.socket);
  enter_node(rank);
  set_rank_of_lines(rank);
  ForkedRank self{rank, ranks_, {sizeof(ibcoll_bootstrap_t), rank, ranks_, allgather, &socket, nullptr, 0}};
  const int code = body(self);
  ::_exit(code != 0 || complaints() == 0 ? code : 97);
}

std::vector<Ending> ForkJob::run(const std::function<int(ForkedRank&)>& body, double seconds) {
  for (int rank = 0; rank < ranks_; ++rank) {
    int pair[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) std::abort();
    const pid_t pid = machines_ != nullptr ? machines_->fork_on(node_of(rank)) : ::fork();
    if (pid == 0) {
      ::close(pair[0]);
      become_rank(rank, pair[1], body);
    }
    ::close(pair[1]);
    processes_.push_back({pid, pair[0], {}});
  }
  std::vector<Ending> endings(processes_.size());
  const double end = seconds_now() + seconds;
  const auto none = [&](auto is) { return std::none_of(processes_.begin(), processes_.end(), is); };
  while (!none([](const Process& p) { return !p.reaped; })) {
    serve();
    reap(endings);
    const bool overdue = seconds_now() > end;
    // Processes that stopped for good end with the last one that did not.
    if (!overdue && !none([](const Process& p) { return !p.reaped && !p.stopped; })) continue;
    for (size_t i = 0; i < processes_.size(); ++i) {
      if (processes_[i].reaped) continue;
      endings[i].overdue = overdue;
      ::kill(processes_[i].pid, SIGKILL);
    }
  }
  for (Process& process : processes_) close_socket(process);
  return endings;
}

void ForkJob::close_socket(Process& process) {
  if (process.socket >= 0) ::close(process.socket);
  process.socket = -1;
}

// Waits a little for requests, takes them, answers when all are there.
void ForkJob::serve() {
  std::vector<pollfd> entries;
  for (const Process& process : processes_) entries.push_back({process.socket, POLLIN, 0});
  ::poll(entries.data(), entries.size(), 20);
  for (size_t i = 0; i < entries.size(); ++i)
    if (entries[i].revents != 0) read_from(processes_[i]);
  answer();
}

void ForkJob::read_from(Process& process) {
  std::byte buffer[4096];
  const ssize_t got = ::recv(process.socket, buffer, sizeof buffer, 0);
  if (got > 0) {
    process.request.insert(process.request.end(), buffer, buffer + got);
    return;
  }
  close_socket(process);
  broken_ = true;
}

void ForkJob::answer() {
  std::vector<std::byte> all;
  size_t waiting = 0;
  for (const Process& process : processes_) {
    uint64_t length = 0;
    if (process.request.size() < sizeof length) continue;
    std::memcpy(&length, process.request.data(), sizeof length);
    if (process.request.size() < sizeof length + length) continue;
    ++waiting;
    all.insert(all.end(), process.request.begin() + sizeof length, process.request.end());
  }
  if (waiting == 0 || (waiting < processes_.size() && !broken_)) return;
  const uint64_t total = waiting == processes_.size() ? all.size() : kBroken;
  for (Process& process : processes_) {
    if (process.request.empty() || process.socket < 0) continue;
    process.request.clear();
    if (write_all(process.socket, &total, sizeof total) && total != kBroken)
      write_all(process.socket, all.data(), all.size());
  }
}

void ForkJob::reap(std::vector<Ending>& endings) {
  for (size_t i = 0; i < processes_.size(); ++i) {
    int status = 0;
    if (processes_[i].reaped || ::waitpid(processes_[i].pid, &status, WNOHANG | WUNTRACED) != processes_[i].pid)
      continue;
    processes_[i].stopped = WIFSTOPPED(status);
    if (processes_[i].stopped) continue;
    processes_[i].reaped = true;
    endings[i].exited = WIFEXITED(status);
    endings[i].code = WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status);
  }
}

}  // namespace ibcoll::multiprocess
