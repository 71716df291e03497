// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_run/watchdog.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "tools/ibcoll_run/process_defaults.h"

namespace ibcoll::run {
namespace {

// How a process with a watchdog ended that gets a signal, and runs `body` instead of taking it.
template <typename Body>
int end_of(int number, double seconds, Body body) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(STDERR_FILENO);  // the text of the watchdog is not tested here
    ProcessDefaults::take_over();
    const Watchdog watchdog(seconds);
    ::kill(::getpid(), number);
    body();
    ::_exit(7);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return status;
}

void take_signal(int number) {
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, number);
  siginfo_t info;
  ::sigwaitinfo(&one, &info);
}

TEST(Watchdog, EndsAProcessThatTakesNoSignal) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    const int status = end_of(number, 0.1, [] { ::sleep(60); });
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == number) << number << ": " << status;
  }
}

// On a busy machine the process may take it too late: then it gets more time.
TEST(Watchdog, LeavesAProcessAloneThatTakesIt) {
  int status = 0;
  for (double seconds = 0.4; seconds < 20; seconds *= 2) {
    status = end_of(SIGTERM, seconds, [seconds] {
      for (const bool again : {false, true}) {
        if (again) ::kill(::getpid(), SIGTERM);
        ::usleep(150'000);  // until the watchdog has seen it
        take_signal(SIGTERM);
        ::usleep(static_cast<useconds_t>(2e6 * seconds));
      }
    });
    if (WIFEXITED(status)) break;
  }
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7) << status;
}

TEST(Watchdog, KnowsWhichSignalsEnd) {
  const int status = end_of(SIGUSR1, 0.1, [] {
    for (const int number : {SIGUSR2, SIGWINCH, SIGQUIT, SIGCONT}) ::kill(::getpid(), number);
    ::usleep(400'000);
  });
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7) << status;
}

TEST(Watchdog, EndsWithItsOwner) {
  for (int i = 0; i < 100; ++i) const Watchdog watchdog(60);
}

}  // namespace
}  // namespace ibcoll::run
