// SPDX-License-Identifier: BSD-3-Clause
// Unmaps memory in the ways that programs do, and looks whether each was reported.
#pragma once

#include "runtime/base/status.h"
#include "runtime/registration_cache/unmap_queue.h"

namespace ibcoll {

// `queue` receives the events. UNSUPPORTED: names the first way that was not reported; NO_MEMORY: the trial itself
// failed.
Status try_unmappings(UnmapQueue& queue);

}  // namespace ibcoll
