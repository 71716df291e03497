// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_run/process_defaults.h"

#include <fcntl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace ibcoll::run {
namespace {

// The job does not receive the signals that its caller ignores, as nohup(1) does. A signal that is blocked would be
// queued all the same.
sigset_t handled_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH, SIGTSTP, SIGCONT}) {
    struct sigaction now {};
    if (::sigaction(number, nullptr, &now) != 0 || now.sa_handler != SIG_IGN) sigaddset(&set, number);
  }
  return set;
}

}  // namespace

ProcessDefaults ProcessDefaults::take_over() {
  // The number of a standard stream that the caller closed would be reused for another file. A closed output becomes
  // one that cannot be written: what ranks print there is an error, as it is without a launcher.
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    const int access = fd == STDOUT_FILENO ? O_RDONLY : O_RDWR;
    if (::fcntl(fd, F_GETFD) < 0 && ::open("/dev/null", access) != fd) std::abort();
  }
  ProcessDefaults before{};
  const sigset_t handled = handled_signals();
  ::sigprocmask(SIG_BLOCK, &handled, &before.signals);
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &ignore, &before.broken_pipe);
  ::sigaction(SIGXFSZ, &ignore, &before.long_file);
  struct sigaction wait_for {};
  wait_for.sa_handler = SIG_DFL;
  ::sigaction(SIGCHLD, &wait_for, &before.ended_child);
  ::getrlimit(RLIMIT_NOFILE, &before.files);
  const rlimit raised{before.files.rlim_max, before.files.rlim_max};
  ::setrlimit(RLIMIT_NOFILE, &raised);
  return before;
}

void ProcessDefaults::restore() const noexcept {
  ::setrlimit(RLIMIT_NOFILE, &files);
  ::sigaction(SIGPIPE, &broken_pipe, nullptr);
  ::sigaction(SIGXFSZ, &long_file, nullptr);
  ::sigaction(SIGCHLD, &ended_child, nullptr);
  ::sigprocmask(SIG_SETMASK, &signals, nullptr);
}

Result<UniqueFd> signal_descriptor() {
  const sigset_t handled = handled_signals();
  UniqueFd fd(::signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd) return error(IBCOLL_ERR_SYSTEM, "signalfd: {}", std::strerror(errno));
  return fd;
}

}  // namespace ibcoll::run
