// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_mpi/output_of.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>

#include "runtime/base/unique_fd.h"

namespace ibcoll::mpi_command {
namespace {

using Clock = std::chrono::steady_clock;

// Reads until the end, or the deadline.
std::string read_all(int pipe, Clock::time_point deadline) {
  std::string text;
  std::array<char, 4096> part;
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd ready{pipe, POLLIN, 0};
    if (left <= 0 || ::poll(&ready, 1, static_cast<int>(left)) == 0) return text;
    const ssize_t got = ::read(pipe, part.data(), part.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return text;
    text.append(part.data(), static_cast<size_t>(got));
  }
}

}  // namespace

std::string output_of(const std::vector<std::string>& words) {
  std::array<int, 2> ends{-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return "";
  const UniqueFd from(ends[0]);
  UniqueFd to(ends[1]);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, to.get(), 1);
  ::posix_spawn_file_actions_adddup2(&actions, to.get(), 2);
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  pid_t process = -1;
  const int failed = ::posix_spawnp(&process, arguments[0], &actions, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  to = UniqueFd();
  if (failed != 0) return "";
  std::string text = read_all(from.get(), Clock::now() + std::chrono::seconds(5));
  ::kill(process, SIGKILL);  // it has ended, or does not end
  while (::waitpid(process, nullptr, 0) < 0 && errno == EINTR) {
  }
  return text;
}

}  // namespace ibcoll::mpi_command
