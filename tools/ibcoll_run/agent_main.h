// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "tools/ibcoll_run/process_defaults.h"

namespace ibcoll::run {

// `ibcoll_run --agent`: runs the ranks of this host as the launcher at the other end of standard input and output says.
// Returns the exit code.
int agent_main(const ProcessDefaults& defaults);

}  // namespace ibcoll::run
