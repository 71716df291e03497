// SPDX-License-Identifier: BSD-3-Clause
// Copies of block size, with or without leaving the destination in the caches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace ibcoll {

// The size for one socket, as the kernel says (virtual machines let the C library answer for the host's whole package);
// 32 MB where it does not say.
uint64_t last_level_cache_bytes() noexcept;
// The size of the second-level cache of processor 0, on most machines a core's own; 1 MB where the kernel does not say.
uint64_t own_cache_bytes() noexcept;

constexpr size_t kLineBytes = 64;  // of a cache

// True where there are stores that bypass the caches.
#if defined(__SSE2__)
constexpr bool kHasStreamingStores = true;
#else
constexpr bool kHasStreamingStores = false;
#endif

// With fewer bytes a core continues before they are stored, with either kind of store.
constexpr size_t kLeastToStream = 1024;

// The stores bypass the caches: lines are not read before they are overwritten, nor taken out of another core's cache.
// Ordered before later stores of this thread by fence_streaming().
inline void copy_streaming(std::byte* to, const std::byte* from, size_t bytes) noexcept {
#if defined(__SSE2__)
  const size_t head = (kLineBytes - reinterpret_cast<uintptr_t>(to) % kLineBytes) % kLineBytes;
  if (bytes >= head + kLineBytes) {
    std::memcpy(to, from, head);
    to += head, from += head, bytes -= head;
    for (; bytes >= kLineBytes; to += kLineBytes, from += kLineBytes, bytes -= kLineBytes) {
      auto* const out = reinterpret_cast<__m128i*>(to);
      const auto* const in = reinterpret_cast<const __m128i*>(from);
      const __m128i a = _mm_loadu_si128(in), b = _mm_loadu_si128(in + 1);
      const __m128i c = _mm_loadu_si128(in + 2), d = _mm_loadu_si128(in + 3);
      _mm_stream_si128(out, a);
      _mm_stream_si128(out + 1, b);
      _mm_stream_si128(out + 2, c);
      _mm_stream_si128(out + 3, d);
    }
  }
#endif
  if (bytes > 0) std::memcpy(to, from, bytes);
}
inline void fence_streaming() noexcept {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

// For times of stores: the processor's clock when all stores before have been made, and none after. Only where
// kHasStreamingStores. Source: Intel SDM, RDTSC (neither MFENCE nor RDTSC alone waits for the other).
inline uint64_t cycles_between_stores() noexcept {
#if defined(__SSE2__)
  _mm_mfence();
  _mm_lfence();
  const uint64_t now = __builtin_ia32_rdtsc();
  _mm_lfence();
  return now;
#else
  return 0;
#endif
}

}  // namespace ibcoll
