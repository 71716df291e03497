// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/types.h>

#include <string>

#include "runtime/base/status.h"
#include "runtime/base/unique_fd.h"

namespace ibcoll::run {

// A process that outlives this one by a moment: when this process ends without having said goodbye (SIGKILL), it kills
// the process groups it was told of, and removes the folder of the job secret. PR_SET_PDEATHSIG alone reaches neither
// what a rank started nor a program that gained privileges.
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
  // The group is gone; its number may soon be another's.
  void remove(pid_t leader);

 private:
  UniqueFd pipe_;
  pid_t process_ = -1;
};

}  // namespace ibcoll::run
