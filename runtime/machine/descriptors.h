// SPDX-License-Identifier: BSD-3-Clause
// Libraries that run out of descriptors fail in their own ways: UCX ends the process, or reports ranks that live as
// dead.
#pragma once

#include <cstdint>

#include "runtime/base/status.h"

namespace ibcoll {

// Ensures that `more` descriptors can be opened; raises the soft limit of the process for that, if it may.
// SYSTEM: the hard limit forbids it, or the soft one where it may not be raised. `what` needs them.
IBCOLL_MODULE_API Status ensure_descriptors(uint64_t more, const char* what, bool may_raise = true);

}  // namespace ibcoll
