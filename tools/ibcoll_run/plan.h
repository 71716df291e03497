// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include "tools/ibcoll_run/host.h"
#include "tools/ibcoll_run/options.h"

namespace ibcoll::run {

// From the command line to what each host has to do: one entry for each host that gets ranks, without secret and
// address. INVALID_ARGUMENT: options or host file.
Result<std::vector<HostJob>> plan_job(const Options& options);

}  // namespace ibcoll::run
