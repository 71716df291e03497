// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_run/watchdog.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>

namespace ibcoll::run {
namespace {

constexpr int kPause = 100;  // milliseconds between two checks
constexpr size_t kStackBytes = 256 << 10;
constexpr int kEnding[] = {SIGINT, SIGTERM, SIGHUP};

bool is_ready(int fd, short events, int milliseconds) {
  pollfd entry{fd, events, 0};
  return ::poll(&entry, 1, milliseconds) > 0;
}

// The thread allocates nothing: the main thread may hang in an allocation.
void end_by_pending_signal() {
  sigset_t pending;
  ::sigpending(&pending);
  for (const int number : kEnding) {
    if (::sigismember(&pending, number) != 1) continue;
    char text[200];
    const int length =
        std::snprintf(text, sizeof text,
                      "ibcoll_run: pid %d got signal %d, and hangs in a call that does not return; ending it at once\n",
                      ::getpid(), number);
    // Only if standard error takes it: a write to it may be the call that hangs.
    if (is_ready(STDERR_FILENO, POLLOUT, 0) && ::write(STDERR_FILENO, text, static_cast<size_t>(length)) < 0) errno = 0;
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, number);
    ::pthread_sigmask(SIG_UNBLOCK, &one, nullptr);  // its default action ends the process here
    ::_exit(128 + number);
  }
}

}  // namespace

Watchdog::Watchdog(double seconds) : checks_(std::max(1, static_cast<int>(seconds * 1000 / kPause))) {
  sigset_t ending;
  sigemptyset(&ending);
  for (const int number : kEnding) sigaddset(&ending, number);
  signals_.reset(::signalfd(-1, &ending, SFD_CLOEXEC | SFD_NONBLOCK));
  stop_.reset(::eventfd(0, EFD_CLOEXEC));
  if (!signals_ || !stop_) return;
  pthread_attr_t small;
  ::pthread_attr_init(&small);
  ::pthread_attr_setstacksize(&small, kStackBytes);
  runs_ = ::pthread_create(&thread_, &small, &Watchdog::run, this) == 0;
  ::pthread_attr_destroy(&small);
}

Watchdog::~Watchdog() {
  const uint64_t one = 1;
  if (runs_ && ::write(stop_.get(), &one, sizeof one) == sizeof one) ::pthread_join(thread_, nullptr);
}

void* Watchdog::run(void* self) {
  static_cast<const Watchdog*>(self)->watch();
  return nullptr;
}

bool Watchdog::stops_within(int milliseconds) const { return is_ready(stop_.get(), POLLIN, milliseconds); }

// Checks are counted, not time: a process that was stopped checks once when it is continued.
void Watchdog::watch() const {
  int pending = 0;
  for (;;) {
    pollfd both[] = {{signals_.get(), POLLIN, 0}, {stop_.get(), POLLIN, 0}};
    if (pending == 0) ::poll(both, 2, -1);
    if (stops_within(pending == 0 ? 0 : kPause)) return;
    pending = is_ready(signals_.get(), POLLIN, 0) ? pending + 1 : 0;
    if (pending > checks_) end_by_pending_signal();
  }
}

}  // namespace ibcoll::run
