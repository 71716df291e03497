// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_run/process_defaults.h"

#include <sys/signalfd.h>

#include <cerrno>
#include <cstring>

namespace ibcoll::run {
namespace {

sigset_t handled_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH, SIGTSTP, SIGCONT}) {
    sigaddset(&set, number);
  }
  return set;
}

}  // namespace

ProcessDefaults ProcessDefaults::take_over() {
  ProcessDefaults before{};
  const sigset_t handled = handled_signals();
  ::sigprocmask(SIG_BLOCK, &handled, &before.signals);
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &ignore, &before.broken_pipe);
  ::getrlimit(RLIMIT_NOFILE, &before.files);
  const rlimit raised{before.files.rlim_max, before.files.rlim_max};
  ::setrlimit(RLIMIT_NOFILE, &raised);
  return before;
}

void ProcessDefaults::restore() const noexcept {
  ::setrlimit(RLIMIT_NOFILE, &files);
  ::sigaction(SIGPIPE, &broken_pipe, nullptr);
  ::sigprocmask(SIG_SETMASK, &signals, nullptr);
}

Result<UniqueFd> signal_descriptor() {
  const sigset_t handled = handled_signals();
  UniqueFd fd(::signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd) return error(IBCOLL_ERR_SYSTEM, "signalfd: {}", std::strerror(errno));
  return fd;
}

}  // namespace ibcoll::run
