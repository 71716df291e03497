// SPDX-License-Identifier: BSD-3-Clause
// Needed with UCX 1.11 and all later ones. As soon as libucs is loaded, libucm writes jumps over munmap(), mremap() and
// others in the code of the C library, also where nobody asks for its memory events. Before 1.15 its mremap() loses the
// fifth argument (versions.h: kMremap): mremap(..., MREMAP_FIXED, where) then moves memory to another address, or
// fails.
#pragma once

#include "runtime/base/status.h"

namespace ibcoll::ucx {

// UCX_MEM_EVENTS is set: the user decides whether UCX hooks these functions.
IBCOLL_MODULE_API bool user_decides_on_hooks();

// To be called before UCX is loaded. UCX then hooks nothing until somebody in the process asks for its memory events,
// as the registration cache does. Nothing is done where UCX is loaded already, is not installed, or where the user
// decides.
IBCOLL_MODULE_API void start_ucm_without_hooks();

}  // namespace ibcoll::ucx
