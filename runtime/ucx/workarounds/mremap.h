// SPDX-License-Identifier: BSD-3-Clause
// Needed with UCX before 1.15 (versions.h: kMremap), which loses the fifth argument of mremap() as soon as it watches
// memory: a program's mremap(..., MREMAP_FIXED, where) then moves its memory to another address, or fails. And UCX does
// not report what lay at `where`.
#pragma once

#include "runtime/base/status.h"

namespace ibcoll::ucx {

// If a UCX with the fault has patched mremap(): leads its jump, for good, through a function that keeps the argument
// and reports both addresses. Else, or if this was called before: nothing. UNSUPPORTED: mremap() is as it was.
IBCOLL_MODULE_API Status correct_mremap();

}  // namespace ibcoll::ucx
