// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_run/guard.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>
#include <vector>

#include "tools/ibcoll_run/secret_folder.h"

namespace ibcoll::run {
namespace {

// Pids as they come: positive ones are added, negative ones removed. Messages are smaller than PIPE_BUF, hence whole.
[[noreturn]] void watch_over(int pipe, const std::string& secret_folder) {
  std::vector<pid_t> groups;
  pid_t message = 0;
  for (;;) {
    const ssize_t got = ::read(pipe, &message, sizeof(message));
    if (got < 0 && errno == EINTR) continue;
    if (got != sizeof(message)) break;
    if (message > 0) {
      groups.push_back(message);
    } else {
      std::erase(groups, -message);
    }
  }
  for (const pid_t group : groups) ::kill(-group, SIGKILL);
  SecretFolder::remove(secret_folder);
  ::_exit(0);
}

[[noreturn]] void run_guard(int pipe, int launchers_end, const std::string& secret_folder) {
  ::setsid();  // out of reach of the terminal's Ctrl-C and hang-up
  sigset_t all;
  sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  // Keeps only its pipe open: no reader shall wait for the end of a stream because of the guard.
  const int null = ::open("/dev/null", O_RDWR);
  for (int fd = 0; fd < 3; ++fd) ::dup2(null, fd);
  ::close(launchers_end);  // or this process would wait for itself, where there is no close_range()
  ::dup2(pipe, 3);
  if (::close_range(4, ~0U, 0) != 0)
    for (long fd = 4; fd < ::sysconf(_SC_OPEN_MAX); ++fd) ::close(static_cast<int>(fd));
  if (::chdir("/") != 0) ::_exit(1);
  watch_over(3, secret_folder);
}

}  // namespace

Result<Guard> Guard::start(const std::string& secret_folder) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return error(IBCOLL_ERR_SYSTEM, "pipe2: {}", std::strerror(errno));
  UniqueFd read_end(ends[0]);
  Guard guard;
  guard.pipe_.reset(ends[1]);
  guard.process_ = ::fork();
  if (guard.process_ < 0) {
    return error(IBCOLL_ERR_SYSTEM, "fork: {}; is the limit of processes (ulimit -u) reached?", std::strerror(errno));
  }
  if (guard.process_ == 0) run_guard(read_end.get(), ends[1], secret_folder);
  return guard;
}

Guard::~Guard() {
  if (!pipe_) return;
  pipe_.reset();
  if (process_ <= 0) return;  // fork() has failed
  // A child that hangs before its execve() has the pipe open, too. Then the guard ends later, with that child.
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  while (::waitpid(process_, nullptr, WNOHANG) == 0 && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::microseconds(200));
}

void Guard::add(pid_t leader) {
  while (::write(pipe_.get(), &leader, sizeof(leader)) < 0 && errno == EINTR) {
  }
}

void Guard::remove(pid_t leader) { add(-leader); }

}  // namespace ibcoll::run
