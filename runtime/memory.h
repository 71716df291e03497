// SPDX-License-Identifier: BSD-3-Clause
// Memory for callers (ibcoll_mem_alloc): page aligned, on huge pages where the system gives them.
#pragma once

#include <cstddef>

#include "runtime/status.h"

namespace ibcoll {

Result<void*> allocate_memory(size_t bytes);
// INVALID_ARGUMENT: not of allocate_memory(), or freed already. nullptr is allowed.
Status free_memory(void* memory);

}  // namespace ibcoll
