// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/types.h>

#include <string>

#include "runtime/base/status.h"
#include "runtime/base/unique_fd.h"

namespace ibcoll::run {

// A process that outlives this one by a moment. When this process ends without destroying it (SIGKILL), it kills the
// process groups that were added, and removes the folder of the job secret. PR_SET_PDEATHSIG alone reaches neither the
// children of a rank nor a program that gained privileges.
class Guard {
 public:
  Guard() = default;
  Guard(Guard&&) = default;
  Guard& operator=(Guard&&) = default;
  ~Guard();  // waits for the process, which ends with the pipe: a second at most

  // `secret_folder`: of SecretFolder.
  static Result<Guard> start(const std::string& secret_folder);
  // `leader` must be the leader of its process group.
  void add(pid_t leader);
  // The group has ended; its number may be reused.
  void remove(pid_t leader);

 private:
  UniqueFd pipe_;
  pid_t process_ = -1;
};

}  // namespace ibcoll::run
