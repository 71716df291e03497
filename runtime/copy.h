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

// Of one socket, as the kernel says (virtual machines let the C library answer for the host's whole package); 32 MB where
// it does not say.
uint64_t last_level_cache_bytes() noexcept;
// Of the second-level cache of processor 0, on most machines a core's own; 1 MB where the kernel does not say.
uint64_t own_cache_bytes() noexcept;

// For results larger than the caches: the stores bypass them, which saves reading the lines before they are overwritten.
// Ordered before later stores of this thread by a fence of its own.
inline void copy_streaming(std::byte* to, const std::byte* from, size_t bytes) noexcept {
#if defined(__SSE2__)
  const size_t head = (16 - reinterpret_cast<uintptr_t>(to) % 16) % 16;
  if (bytes >= head + 64) {
    std::memcpy(to, from, head);
    to += head, from += head, bytes -= head;
    for (; bytes >= 64; to += 64, from += 64, bytes -= 64) {
      auto* const out = reinterpret_cast<__m128i*>(to);
      const auto* const in = reinterpret_cast<const __m128i*>(from);
      const __m128i a = _mm_loadu_si128(in), b = _mm_loadu_si128(in + 1);
      const __m128i c = _mm_loadu_si128(in + 2), d = _mm_loadu_si128(in + 3);
      _mm_stream_si128(out, a);
      _mm_stream_si128(out + 1, b);
      _mm_stream_si128(out + 2, c);
      _mm_stream_si128(out + 3, d);
    }
    _mm_sfence();
  }
#endif
  std::memcpy(to, from, bytes);
}

}  // namespace ibcoll
