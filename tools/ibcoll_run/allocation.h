// SPDX-License-Identifier: BSD-3-Clause
// The hosts that a batch system gave to the job in which the launcher runs.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/ibcoll_run/hosts.h"

namespace ibcoll::run {

struct Allocation {
  std::string source;  // "Slurm allocation (SLURM_JOB_NODELIST)"
  std::vector<HostEntry> hosts;
};

// From the environment: Slurm, PBS, LSF. None: not in an allocation. INVALID_ARGUMENT: what is there cannot be
// understood.
Result<std::optional<Allocation>> allocation_here();

// "n[001-003,7],m" -> n001 n002 n003 n7 m.
Result<std::vector<std::string>> slurm_hosts(std::string_view list);
// "4(x2),3" -> 4 4 3.
Result<std::vector<int>> slurm_counts(std::string_view list);

// "h1:4,h2:4" for messages; at most some, then "and 12 more".
std::string host_list(const std::vector<HostEntry>& hosts);

}  // namespace ibcoll::run
