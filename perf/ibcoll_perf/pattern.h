// SPDX-License-Identifier: BSD-3-Clause
// Payload that tells where it comes from: each 64-bit word depends on source, destination, iteration and its place in
// the block, so that a block that is late, stale, shifted or of another pair of ranks shows. Filling and verifying run
// at memory speed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace ibcoll::perf {

inline constexpr uint64_t kPatternStep = 0x9E3779B97F4A7C15;  // odd: each word of a block is another one

// The first word of the block that `source` sends to `destination` in this iteration.
uint64_t pattern_key(int source, int destination, uint64_t iteration) noexcept;

void fill_pattern(std::span<std::byte> block, uint64_t key) noexcept;

// What is wrong with a block: how many bytes, and where the first one is.
struct Damage {
  uint64_t bytes = 0;
  size_t first = 0;
  std::byte expected{}, found{};
};
// Nothing when every byte is right.
std::optional<Damage> verify_pattern(std::span<const std::byte> block, uint64_t key) noexcept;
std::optional<Damage> verify_constant(std::span<const std::byte> block, std::byte value) noexcept;

// Elements of a reduction, of 1, 2, 4 or 8 bytes (unsigned): element j is key + j * step, modulo the type. A sum over
// ranks is then known without summing: the sum of the keys + j * (ranks * step), modulo the type.
void fill_elements(std::span<std::byte> elements, size_t width, uint64_t key, uint64_t step) noexcept;
std::optional<Damage> verify_elements(std::span<const std::byte> elements, size_t width, uint64_t key,
                                      uint64_t step) noexcept;

}  // namespace ibcoll::perf
