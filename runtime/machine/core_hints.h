// SPDX-License-Identifier: BSD-3-Clause
// Hints of a thread to the core that it runs on.
#pragma once

namespace ibcoll {

// This is a spin loop.
inline void relax() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Requests a cache line that will be written soon, so that the store does not wait for other cores.
inline void prefetch_to_write(const void* address) noexcept {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(address)));  // __builtin_prefetch asks to read only
#else
  __builtin_prefetch(address, 1);
#endif
}

}  // namespace ibcoll
