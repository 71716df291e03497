// SPDX-License-Identifier: BSD-3-Clause
// UCX before 1.15 loses the fifth argument of mremap() as soon as it watches memory: a program's
// mremap(..., MREMAP_FIXED, where) then moves its memory to anywhere, or fails. And what lay at `where` goes
// unreported.
#pragma once

#include "runtime/base/status.h"

namespace ibcoll {

// Where UCX has patched mremap(), leads its jump through a function that knows the argument and has both places
// reported; for good, as is UCX's own patch. Where it has not, or this was called before: nothing. UNSUPPORTED:
// mremap() is as it was.
IBCOLL_MODULE_API Status mend_mremap();

}  // namespace ibcoll
