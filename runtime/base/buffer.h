// SPDX-License-Identifier: BSD-3-Clause
// Views of caller memory: one region, or the p blocks of a collective in rank order. They own nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace ibcoll {

using Bytes = std::span<std::byte>;
using ConstBytes = std::span<const std::byte>;

// Block i: `bytes` bytes at i * bytes (regular), or counts[i] bytes at displacements[i] (irregular).
template <typename Byte>
struct BasicBlocks {
  Byte* base = nullptr;
  uint64_t bytes = 0;
  const uint64_t* counts = nullptr;  // nullptr: regular
  const uint64_t* displacements = nullptr;

  uint64_t size(int i) const noexcept { return counts ? counts[i] : bytes; }
  uint64_t offset(int i) const noexcept { return counts ? displacements[i] : bytes * static_cast<uint64_t>(i); }
  std::span<Byte> operator[](int i) const noexcept { return {base + offset(i), size(i)}; }
};
using Blocks = BasicBlocks<std::byte>;
using ConstBlocks = BasicBlocks<const std::byte>;

// [at, at + most) of a region, cut at its end.
template <typename Byte>
std::span<Byte> part(std::span<Byte> region, uint64_t at, uint64_t most) noexcept {
  if (at >= region.size()) return {};
  return region.subspan(at, most < region.size() - at ? most : region.size() - at);
}

}  // namespace ibcoll
