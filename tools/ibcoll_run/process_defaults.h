// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/resource.h>
#include <csignal>

#include "runtime/base/status.h"
#include "runtime/base/unique_fd.h"

namespace ibcoll::run {

// The changes of the launcher to its own process, and how a child gets it back as the launcher found it.
struct ProcessDefaults {
  sigset_t signals;
  rlimit files;
  struct sigaction broken_pipe, long_file;
  struct sigaction ended_child;

  // Blocks the signals that signal_descriptor() then yields, but for those that the caller ignores; ignores SIGPIPE
  // and SIGXFSZ (writes tell), takes note of the ends of children though the caller ignored those of its own, and raises the soft
  // limit of open files to the hard one: each rank takes up to five. Standard streams that are closed become /dev/null,
  // the output one that refuses to be written.
  static ProcessDefaults take_over();
  void restore() const noexcept;
};

// A signalfd for what the launcher forwards or acts upon.
Result<UniqueFd> signal_descriptor();

}  // namespace ibcoll::run
