// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/machine/process_watch.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>

namespace ibcoll {
namespace {

// A process that sleeps until it is ended.
class Sleeper {
 public:
  Sleeper() : pid_(::fork()) {
    if (pid_ != 0) return;
    ::alarm(60);
    for (;;) ::pause();
  }
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;
  ~Sleeper() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  pid_t pid() const { return pid_; }
  // Ends it, and leaves it to be waited for: ended, but still in the list of processes.
  void end() const {
    ::kill(pid_, SIGKILL);
    siginfo_t info;
    ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT);
  }

 private:
  pid_t pid_;
};

// No descriptor from this one on can be opened while it lives.
class FewDescriptors {
 public:
  explicit FewDescriptors(int number) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit few{static_cast<rlim_t>(number), before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &few);
  }
  FewDescriptors(const FewDescriptors&) = delete;
  FewDescriptors& operator=(const FewDescriptors&) = delete;
  ~FewDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

TEST(ProcessWatch, TellsOfAnEnd) {
  const Sleeper lasting, ending;
  ProcessWatch watch(ProcessWatch::Until::kEnded);
  ASSERT_TRUE(watch.add(3, lasting.pid(), 0).ok());
  ASSERT_TRUE(watch.add(4, ending.pid(), 0).ok());
  EXPECT_TRUE(watch.ended().empty());
  EXPECT_TRUE(watch.alive(4));
  ending.end();
  EXPECT_FALSE(watch.alive(4));
  EXPECT_EQ(watch.ended(), std::vector<int>{4});
  EXPECT_TRUE(watch.ended().empty());
  EXPECT_TRUE(watch.alive(3));
}

// The same number is another process there.
TEST(ProcessWatch, ANamespaceOfProcessesIsAMachineOfItsOwn) {
  enum Outcome { kAnother, kSame, kRefused };
  const uint64_t own = ProcessId::own().machine;
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (::unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0) ::_exit(kRefused);
    const pid_t first = ::fork();  // the first process there
    if (first == 0) ::_exit(ProcessId::own().machine == own ? kSame : kAnother);
    int ended = 0;
    ::_exit(::waitpid(first, &ended, 0) == first && WIFEXITED(ended) ? WEXITSTATUS(ended) : kRefused);
  }
  int ended = 0;
  ASSERT_EQ(::waitpid(child, &ended, 0), child);
  ASSERT_TRUE(WIFEXITED(ended)) << ended;
  if (WEXITSTATUS(ended) == kRefused) GTEST_SKIP() << "this machine does not let a process have namespaces of its own";
  EXPECT_EQ(WEXITSTATUS(ended), kAnother);
}

TEST(ProcessWatch, ForgetsOneOfSeveral) {
  const auto descriptors = [] {
    const std::filesystem::directory_iterator open("/proc/self/fd");
    return std::distance(begin(open), end(open));
  };
  const auto before = descriptors();
  {
    const Sleeper first, second, third;
    ProcessWatch watch(ProcessWatch::Until::kEnded);
    ASSERT_TRUE(watch.add(3, first.pid(), 0).ok());
    ASSERT_TRUE(watch.add(4, second.pid(), 0).ok());
    ASSERT_TRUE(watch.add(5, third.pid(), 0).ok());
    first.end();
    EXPECT_EQ(watch.ended(), std::vector<int>{3});
    watch.remove(4);
    EXPECT_TRUE(watch.alive(5));
    third.end();
    EXPECT_FALSE(watch.alive(5));
    EXPECT_EQ(watch.ended(), std::vector<int>{5});
  }
  EXPECT_EQ(descriptors(), before);
}

// poll() takes no more at a time than descriptors are allowed.
TEST(ProcessWatch, TellsOfAnEndWhereDescriptorsHaveBecomeShort) {
  const Sleeper lasting, ending;
  ProcessWatch watch(ProcessWatch::Until::kEnded);
  const int free = ::dup(0);  // for /proc, later
  for (int rank = 0; rank < free + 10; ++rank) ASSERT_TRUE(watch.add(rank, lasting.pid(), 0).ok());
  ASSERT_TRUE(watch.add(100, ending.pid(), 0).ok());
  ::close(free);
  const FewDescriptors few(free + 1);
  EXPECT_TRUE(watch.ended().empty());
  ending.end();
  std::vector<int> ended;
  for (int i = 0; i < 6000 && ended.empty(); ++i) {
    ::usleep(10'000);
    ended = watch.ended();
  }
  EXPECT_EQ(ended, std::vector<int>{100});
}

// A library that closes all descriptors that it does not know (closefrom).
TEST(ProcessWatch, GoesOnWhereSomebodyClosesItsDescriptors) {
  const Sleeper lasting, ending;
  ProcessWatch watch(ProcessWatch::Until::kEnded);
  const int next = ::dup(0);
  ::close(next);
  ASSERT_TRUE(watch.add(3, lasting.pid(), 0).ok());
  ASSERT_TRUE(watch.add(4, ending.pid(), 0).ok());
  ::close(next);
  ::close(next + 1);
  EXPECT_TRUE(watch.alive(3));
  EXPECT_EQ(watch.ended(), std::vector<int>());
  ending.end();
  EXPECT_FALSE(watch.alive(4));
  std::vector<int> ended;
  for (int i = 0; i < 3000 && ended.empty(); ++i) {
    ended = watch.ended();
    ::usleep(20'000);  // /proc is looked at once a second
  }
  EXPECT_EQ(ended, std::vector<int>{4});
  EXPECT_TRUE(watch.alive(3));
}

char state_of_first_thread() {
  std::ifstream stat(fmt::format("/proc/self/task/{}/stat", ::getpid()));
  std::string text;
  std::getline(stat, text);
  const size_t end = text.rfind(") ");
  return end == std::string::npos ? '?' : text[end + 2];
}

// Its first thread ends, another one lives on.
TEST(ProcessWatch, AThreadThatEndsIsNotTheProcess) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::alarm(60);
    pthread_t other;
    ::pthread_create(
        &other, nullptr,
        [](void* to) -> void* {
          while (state_of_first_thread() != 'Z') ::usleep(1'000);
          [[maybe_unused]] const ssize_t written = ::write(*static_cast<int*>(to), "x", 1);
          for (;;) ::pause();
        },
        &ready[1]);
    ::syscall(SYS_exit, 0);
  }
  char word = 0;
  EXPECT_EQ(::read(ready[0], &word, 1), 1);
  ProcessWatch watch(ProcessWatch::Until::kEnding);
  EXPECT_TRUE(watch.add(5, pid, 0).ok());
  EXPECT_TRUE(watch.ended().empty());
  ::kill(pid, SIGKILL);
  siginfo_t info;
  ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT);
  EXPECT_EQ(watch.ended(), std::vector<int>{5});
  ::waitpid(pid, nullptr, 0);
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST(ProcessWatch, AnotherProcessOfTheSamePidIsNotTheOneWatched) {
  const Sleeper sleeper;
  ProcessWatch watch(ProcessWatch::Until::kEnded);
  ASSERT_TRUE(watch.add(1, sleeper.pid(), 12345).ok());
  EXPECT_FALSE(watch.alive(1));
  EXPECT_EQ(watch.ended(), std::vector<int>{1});
}

// A rank that cannot look must not take a live process for dead.
TEST(ProcessId, TheStartOfAProcessIsKnownOrItIsNot) {
  const Sleeper lasting, ending;
  ending.end();
  const std::optional<uint64_t> start = ProcessId::start_of(lasting.pid());
  ASSERT_TRUE(start);
  EXPECT_NE(*start, 0u);
  EXPECT_EQ(ProcessId::start_of(ending.pid()), 0u);
  pid_t gone = 0;
  {
    const Sleeper third;
    gone = third.pid();
  }
  EXPECT_EQ(ProcessId::start_of(gone), 0u);
  const FewDescriptors none(0);
  EXPECT_EQ(ProcessId::start_of(lasting.pid()), std::nullopt);
  EXPECT_EQ(ProcessId::start_of(gone), 0u);
}

TEST(ProcessWatch, WhatCannotBeWatchedIsAnError) {
  const Sleeper sleeper;
  ProcessWatch watch(ProcessWatch::Until::kEnded);
  Status status;
  {
    const FewDescriptors none(0);
    status = watch.add(7, sleeper.pid(), 0);
  }
  EXPECT_EQ(status.code(), IBCOLL_ERR_SYSTEM);
  EXPECT_NE(status.text().find("of rank 7 cannot be watched"), std::string::npos) << status.text();
  EXPECT_NE(status.text().find("pidfd_open: Too many open files"), std::string::npos) << status.text();
}

}  // namespace
}  // namespace ibcoll
