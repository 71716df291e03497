// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/base/unique_fd.h"
#include "tools/ibcoll_run/core_binding.h"
#include "tools/ibcoll_run/host.h"
#include "tools/ibcoll_run/process_defaults.h"
#include "tools/ibcoll_run/pseudo_terminal.h"

namespace ibcoll::run {

// One rank as a child process, leader of a process group of its own. The process stays a zombie, and its number its
// own, until reap().
struct RankProcess {
  pid_t pid = -1;
  UniqueFd descriptor;  // readable once the process ended
  UniqueFd output;      // read ends, non-blocking; that of a terminal ends with EIO
  UniqueFd error_output;

  // How it ended; to be asked once `descriptor` is readable. Nothing yet while a debugger that is attached to it has
  // not seen its end. Leaves the zombie.
  std::optional<RankExit> exit_status() const;
  // Kills what is left of the process group.
  void kill() const;
  // Reaps the process, after kill(). One that cannot be killed (another user's, or one in an uninterruptible call)
  // is waited for until the deadline; false: it may still run.
  bool reap(std::chrono::steady_clock::time_point deadline);
};

// The step that a child could not do, as it comes through SpawnSettings::failures.
struct ExecFailure {
  int rank;
  int reason;  // errno
  enum What { kExecute, kEnterFolder } what;
};

// The settings that all ranks of a host have in common.
struct SpawnSettings {
  const ProcessDefaults* defaults;
  const CoreBinding* binding;
  int secret;    // stays open in a rank
  int failures;  // write end of a pipe, close-on-exec
};

struct RankStart {
  int rank;
  int index_on_host;
  std::string path;  // file to execute
  const RankProgram* program;
  std::vector<std::string> environment;
  int input;  // becomes its standard input
};

// Starts one rank, which writes to `output`. SYSTEM errors name the call.
Result<RankProcess> spawn_rank(const SpawnSettings& settings, const RankStart& start, OutputEnds output);

// A descriptor of a child process that is readable once it ended, close-on-exec.
Result<UniqueFd> open_process(pid_t pid);

// A sealed memfd that holds the job secret, at a number that scripts do not use.
Result<UniqueFd> secret_file(const rendezvous::Secret& secret);

}  // namespace ibcoll::run
