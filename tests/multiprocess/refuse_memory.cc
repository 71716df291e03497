// SPDX-License-Identifier: BSD-3-Clause
#include "tests/multiprocess/refuse_memory.h"

#include <execinfo.h>

#include <cstdlib>
#include <new>
#include <utility>

namespace {

thread_local uint64_t left = 0;  // until one is refused; 0: none is
thread_local bool refused = false;

// IBCOLL_TEST_SHOW_REFUSED: where the refused allocations are made.
void show() {
  void* frames[40];
  static const bool wanted = std::getenv("IBCOLL_TEST_SHOW_REFUSED") != nullptr;
  if (wanted) ::backtrace_symbols_fd(frames, ::backtrace(frames, 40), 2);
}

void* take(std::size_t bytes, std::size_t alignment) noexcept {
  if (left > 0 && --left == 0) {
    refused = true;
    show();
    return nullptr;
  }
  const std::size_t wanted = (bytes + alignment - 1) / alignment * alignment;
  return std::aligned_alloc(alignment, wanted > 0 ? wanted : alignment);
}

void* take_or_throw(std::size_t bytes, std::size_t alignment) {
  if (void* const memory = take(bytes, alignment)) return memory;
  throw std::bad_alloc();
}

constexpr std::size_t kUsual = __STDCPP_DEFAULT_NEW_ALIGNMENT__;

}  // namespace

namespace ibcoll::multiprocess {

void refuse_allocation(uint64_t nth) {
  left = nth;
  refused = false;
}
bool allocation_refused() { return refused; }

GivenMemory::GivenMemory() : left_(std::exchange(left, 0)) {}
GivenMemory::~GivenMemory() { left = left_; }

}  // namespace ibcoll::multiprocess

using Alignment = std::align_val_t;
#define EXPORTED __attribute__((visibility("default")))

EXPORTED void* operator new(std::size_t bytes) { return take_or_throw(bytes, kUsual); }
EXPORTED void* operator new[](std::size_t bytes) { return take_or_throw(bytes, kUsual); }
EXPORTED void* operator new(std::size_t bytes, Alignment to) { return take_or_throw(bytes, std::size_t(to)); }
EXPORTED void* operator new[](std::size_t bytes, Alignment to) { return take_or_throw(bytes, std::size_t(to)); }
EXPORTED void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept { return take(bytes, kUsual); }
EXPORTED void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept { return take(bytes, kUsual); }
EXPORTED void* operator new(std::size_t bytes, Alignment to, const std::nothrow_t&) noexcept {
  return take(bytes, std::size_t(to));
}
EXPORTED void* operator new[](std::size_t bytes, Alignment to, const std::nothrow_t&) noexcept {
  return take(bytes, std::size_t(to));
}
EXPORTED void operator delete(void* memory) noexcept { std::free(memory); }
EXPORTED void operator delete[](void* memory) noexcept { std::free(memory); }
EXPORTED void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
EXPORTED void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
EXPORTED void operator delete(void* memory, Alignment) noexcept { std::free(memory); }
EXPORTED void operator delete[](void* memory, Alignment) noexcept { std::free(memory); }
EXPORTED void operator delete(void* memory, std::size_t, Alignment) noexcept { std::free(memory); }
EXPORTED void operator delete[](void* memory, std::size_t, Alignment) noexcept { std::free(memory); }
EXPORTED void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
EXPORTED void operator delete[](void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
EXPORTED void operator delete(void* memory, Alignment, const std::nothrow_t&) noexcept { std::free(memory); }
EXPORTED void operator delete[](void* memory, Alignment, const std::nothrow_t&) noexcept { std::free(memory); }
