// SPDX-License-Identifier: BSD-3-Clause
#include "perf/ibcoll_perf/pattern.h"

#include <cstring>

namespace ibcoll::perf {
namespace {

// The finalizer of SplitMix64 (Steele, Lea, Flood 2014): neighbouring ranks and iterations get unrelated keys.
uint64_t mix(uint64_t x) noexcept {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

// Blocks start at any address: words are moved by memcpy, which the compiler turns into plain loads and stores.
template <typename T>
void fill_series(std::span<std::byte> block, uint64_t key, uint64_t step) noexcept {
  if (block.empty()) return;  // memcpy must not see its null pointer
  const size_t whole = block.size() / sizeof(T);
  for (size_t i = 0; i < whole; ++i) {
    const T value = static_cast<T>(key + i * step);
    std::memcpy(block.data() + i * sizeof(T), &value, sizeof(T));
  }
  const T rest = static_cast<T>(key + whole * step);
  std::memcpy(block.data() + whole * sizeof(T), &rest, block.size() % sizeof(T));
}

template <typename T>
bool matches_series(std::span<const std::byte> block, uint64_t key, uint64_t step) noexcept {
  if (block.empty()) return true;
  const size_t whole = block.size() / sizeof(T);
  T difference = 0;  // no branch in the loop
  for (size_t i = 0; i < whole; ++i) {
    T value;
    std::memcpy(&value, block.data() + i * sizeof(T), sizeof(T));
    difference |= static_cast<T>(value ^ static_cast<T>(key + i * step));
  }
  const T rest = static_cast<T>(key + whole * step);
  return difference == 0 && std::memcmp(block.data() + whole * sizeof(T), &rest, block.size() % sizeof(T)) == 0;
}

template <typename ExpectedAt>
std::optional<Damage> describe(std::span<const std::byte> block, ExpectedAt expected_at) noexcept {
  Damage damage;
  for (size_t i = 0; i < block.size(); ++i) {
    const std::byte expected = expected_at(i);
    if (block[i] == expected) continue;
    if (damage.bytes++ == 0) damage = Damage{1, i, expected, block[i]};
  }
  if (damage.bytes == 0) return std::nullopt;
  return damage;
}

template <typename T>
std::optional<Damage> verify_series(std::span<const std::byte> block, uint64_t key, uint64_t step) noexcept {
  if (matches_series<T>(block, key, step)) return std::nullopt;
  return describe(block, [=](size_t i) {
    const T value = static_cast<T>(key + i / sizeof(T) * step);
    std::byte bytes[sizeof(T)];
    std::memcpy(bytes, &value, sizeof(T));
    return bytes[i % sizeof(T)];
  });
}

}  // namespace

uint64_t pattern_key(int source, int destination, uint64_t iteration) noexcept {
  const auto pair = static_cast<uint64_t>(source) << 32 | static_cast<uint32_t>(destination);
  return mix(mix(pair + kPatternStep) + iteration);
}

void fill_pattern(std::span<std::byte> block, uint64_t key) noexcept {
  fill_series<uint64_t>(block, key, kPatternStep);
}

std::optional<Damage> verify_pattern(std::span<const std::byte> block, uint64_t key) noexcept {
  return verify_series<uint64_t>(block, key, kPatternStep);
}

std::optional<Damage> verify_constant(std::span<const std::byte> block, std::byte value) noexcept {
  return verify_series<uint8_t>(block, static_cast<uint64_t>(value), 0);
}

void fill_elements(std::span<std::byte> elements, size_t width, uint64_t key, uint64_t step) noexcept {
  switch (width) {
    case 1:
      return fill_series<uint8_t>(elements, key, step);
    case 2:
      return fill_series<uint16_t>(elements, key, step);
    case 4:
      return fill_series<uint32_t>(elements, key, step);
    default:
      return fill_series<uint64_t>(elements, key, step);
  }
}

std::optional<Damage> verify_elements(std::span<const std::byte> elements, size_t width, uint64_t key,
                                      uint64_t step) noexcept {
  switch (width) {
    case 1:
      return verify_series<uint8_t>(elements, key, step);
    case 2:
      return verify_series<uint16_t>(elements, key, step);
    case 4:
      return verify_series<uint32_t>(elements, key, step);
    default:
      return verify_series<uint64_t>(elements, key, step);
  }
}

}  // namespace ibcoll::perf
