// SPDX-License-Identifier: BSD-3-Clause
// The symbols of an executable go before those of its libraries, so these are what libibcoll.so and operator new call.
#include "perf/measures/count_allocations.h"

#include <atomic>
#include <cerrno>
#include <cstddef>

#define REPLACES_LIBC extern "C" __attribute__((visibility("default")))

// glibc's own names of what is replaced.
extern "C" void* __libc_malloc(size_t bytes);
extern "C" void* __libc_calloc(size_t count, size_t bytes);
extern "C" void* __libc_realloc(void* memory, size_t bytes);
extern "C" void* __libc_memalign(size_t alignment, size_t bytes);

namespace {

std::atomic<uint64_t> calls{0};

void count() noexcept { calls.fetch_add(1, std::memory_order_relaxed); }

}  // namespace

namespace ibcoll::perf {

uint64_t allocations() noexcept { return calls.load(std::memory_order_relaxed); }

}  // namespace ibcoll::perf

REPLACES_LIBC void* malloc(size_t bytes) noexcept {
  count();
  return __libc_malloc(bytes);
}

REPLACES_LIBC void* calloc(size_t number, size_t bytes) noexcept {
  count();
  return __libc_calloc(number, bytes);
}

REPLACES_LIBC void* realloc(void* memory, size_t bytes) noexcept {
  count();
  return __libc_realloc(memory, bytes);
}

REPLACES_LIBC void* memalign(size_t alignment, size_t bytes) noexcept {
  count();
  return __libc_memalign(alignment, bytes);
}

REPLACES_LIBC void* aligned_alloc(size_t alignment, size_t bytes) noexcept {
  count();
  return __libc_memalign(alignment, bytes);
}

REPLACES_LIBC int posix_memalign(void** memory, size_t alignment, size_t bytes) noexcept {
  count();
  void* taken = __libc_memalign(alignment, bytes);
  if (taken == nullptr) return ENOMEM;
  *memory = taken;
  return 0;
}
