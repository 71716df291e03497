// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include "tools/ibcoll_run/host.h"

namespace ibcoll::run {

// The place where a rank finds the job secret.
struct SecretLocation {
  int descriptor = -1;
  std::string file;
};

// The environment that all ranks of a host with one program share: this process's own, the job's and the program's on
// top, and where the rendezvous is.
std::vector<std::string> base_environment_of_rank(const HostJob& job, const RankProgram& program,
                                                  const SecretLocation& secret);
// With the variables of the index-th rank of the host.
std::vector<std::string> with_rank(std::vector<std::string> base, const HostJob& job, int index);
// The value of PATH in an environment, else the system's default.
std::string search_path(const std::vector<std::string>& environment);

}  // namespace ibcoll::run
