// SPDX-License-Identifier: BSD-3-Clause
// Memory for callers (ibcoll_mem_alloc): page aligned, on huge pages where the system gives them.
#pragma once

#include <cstddef>
#include <span>

#include "runtime/base/status.h"

namespace ibcoll {

Result<void*> allocate_memory(size_t bytes);
// INVALID_ARGUMENT: not of allocate_memory(), or freed already. nullptr is allowed.
Status free_memory(void* memory);

// Is all of it part of one block that is not freed?
IBCOLL_MODULE_API bool is_allocated(std::span<const std::byte> memory) noexcept;
// From now on `watcher` is called for each block before it is freed, on the thread that frees it, until unwatch_frees()
// with the same arguments has returned. It must not allocate or free here.
using FreeWatcher = void (*)(void* context, const void* address, size_t bytes);
IBCOLL_MODULE_API void watch_frees(FreeWatcher watcher, void* context);
IBCOLL_MODULE_API void unwatch_frees(FreeWatcher watcher, void* context) noexcept;

}  // namespace ibcoll
