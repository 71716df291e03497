// SPDX-License-Identifier: BSD-3-Clause
// Counts what a process takes from malloc, in libraries as well: linking count_allocations.cc replaces the C library's
// functions.
#pragma once

#include <cstdint>

namespace ibcoll::perf {

// Calls of malloc, calloc, realloc and their aligned kin since the process began, in all threads.
uint64_t allocations() noexcept;

}  // namespace ibcoll::perf
