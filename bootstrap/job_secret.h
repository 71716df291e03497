// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "bootstrap/rendezvous_protocol.h"

namespace ibcoll {

// The secret that ibcoll_run handed to this process: read at the first call from the inherited descriptor, which is
// then closed, or, where a wrapper closed that, from the file that only this user can read; remembered for later calls.
// Any thread may call. BOOTSTRAP when it is in neither, or the file is one that others could have written.
Result<rendezvous::Secret> job_secret();

}  // namespace ibcoll
