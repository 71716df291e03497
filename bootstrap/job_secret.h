// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "bootstrap/rendezvous_protocol.h"

namespace ibcoll {

// The secret that ibcoll_run handed to this process: read from the inherited descriptor at the first call, which
// closes it so that programs started from here do not get it; remembered for later calls. Any thread may call.
// BOOTSTRAP when the descriptor is not there or is something else.
Result<rendezvous::Secret> job_secret();

}  // namespace ibcoll
