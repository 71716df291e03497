// SPDX-License-Identifier: BSD-3-Clause
#include "tests/conformance/processes.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <random>

namespace ibcoll::conformance {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kStart(30);
constexpr int kRounds = 3;  // of exchanges while a rank sets itself up (rank.cc)

}  // namespace

Processes::Processes(const std::string& transport, int size, const std::string& scenario)
    : ranks_(static_cast<size_t>(size)) {
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  const std::string job = std::to_string(std::random_device{}());
  for (int rank = 0; rank < size; ++rank) {
    spawn((program / "ibcoll_conformance_rank").string(), transport, rank, size, scenario, job);
  }
  started_ = true;
  for (int round = 0; round < kRounds && started_; ++round) started_ = exchange();
  EXPECT_TRUE(started_) << "the ranks did not get ready";
}

Processes::~Processes() {
  for (Rank& rank : ranks_) {
    if (rank.pid > 0) {
      ::kill(rank.pid, SIGKILL);
      ::waitpid(rank.pid, nullptr, 0);
    }
    if (rank.socket >= 0) ::close(rank.socket);
  }
}

void Processes::spawn(const std::string& program, const std::string& transport, int rank, int size,
                      const std::string& scenario, const std::string& job) {
  std::array<int, 2> sockets;
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets.data()), 0);
  Rank& made = ranks_[static_cast<size_t>(rank)];
  made.socket = sockets[0];
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  constexpr int kSocketOfRank = 3;
  posix_spawn_file_actions_adddup2(&actions, sockets[1], kSocketOfRank);
  std::vector<std::string> words{program, transport, std::to_string(rank), std::to_string(size), scenario, job};
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const int failure = ::posix_spawn(&made.pid, program.c_str(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(sockets[1]);
  ASSERT_EQ(failure, 0) << program << ": " << std::strerror(failure);
}

// Every rank says something, and hears what all have said.
bool Processes::exchange() {
  std::string all;
  for (int rank = 0; rank < size(); ++rank) {
    const std::optional<std::string> word = hear(rank, kStart);
    if (!word) return false;
    all += std::to_string(word->size()) + ":" + *word;
  }
  for (int rank = 0; rank < size(); ++rank) tell(rank, all);
  return true;
}

void Processes::tell(int rank, const std::string& word) {
  const ssize_t sent = ::send(ranks_[static_cast<size_t>(rank)].socket, word.data(), word.size(), MSG_NOSIGNAL);
  EXPECT_EQ(sent, static_cast<ssize_t>(word.size())) << "rank " << rank << ": " << std::strerror(errno);
}

std::optional<std::string> Processes::hear(int rank, std::chrono::milliseconds timeout) {
  pollfd waiting{ranks_[static_cast<size_t>(rank)].socket, POLLIN, 0};
  if (::poll(&waiting, 1, static_cast<int>(timeout.count())) <= 0) return std::nullopt;
  std::string word(64 * 1024, '\0');
  const ssize_t length = ::recv(waiting.fd, word.data(), word.size(), 0);
  if (length <= 0) return std::nullopt;
  word.resize(static_cast<size_t>(length));
  return word;
}

bool Processes::expect(int rank, const std::string& word, std::chrono::milliseconds timeout) {
  const std::optional<std::string> heard = hear(rank, timeout);
  EXPECT_EQ(heard.value_or("(nothing)"), word) << "from rank " << rank;
  return heard == word;
}

void Processes::kill(int rank) { ::kill(ranks_[static_cast<size_t>(rank)].pid, SIGKILL); }

int Processes::wait(int rank, std::chrono::milliseconds timeout) {
  Rank& ended = ranks_[static_cast<size_t>(rank)];
  for (const auto deadline = Clock::now() + timeout; Clock::now() < deadline; ::usleep(2'000)) {
    int status = 0;
    if (::waitpid(ended.pid, &status, WNOHANG) != ended.pid) continue;
    ended.pid = -1;
    return status;
  }
  return -1;
}

}  // namespace ibcoll::conformance
