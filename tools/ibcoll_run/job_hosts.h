// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include "tools/ibcoll_run/options.h"
#include "tools/ibcoll_run/placement.h"

namespace ibcoll::run {

// Whether a host of this name needs no remote shell.
bool is_this_machine(const std::string& host);

// Places the ranks of the job: on the hosts of the options, of the batch system (and says so), or on this machine.
// INVALID_ARGUMENT: options, host file or allocation.
Result<std::vector<HostRanks>> place_job(const Options& options);

}  // namespace ibcoll::run
