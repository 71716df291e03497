// SPDX-License-Identifier: BSD-3-Clause
// Hashes that are the same on all ranks. Not for secrets.
#pragma once

#include <cstdint>
#include <string_view>

namespace ibcoll {

// splitmix64's finalizer: every bit of the value changes half of the result (Steele, Lea, Flood 2014).
constexpr uint64_t scramble(uint64_t value) noexcept {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

// The increment of splitmix64's sequence: the golden ratio.
constexpr uint64_t kGoldenRatio = 0x9e3779b97f4a7c15;

// A digest of several values, in their order.
class Digest {
 public:
  constexpr Digest& add(uint64_t value) noexcept {
    state_ = scramble((state_ ^ value) + kGoldenRatio);
    return *this;
  }
  constexpr Digest& add(std::string_view text) noexcept {
    for (const char c : text) add(static_cast<unsigned char>(c));
    return add(text.size());
  }
  constexpr uint64_t value() const noexcept { return state_; }
  constexpr uint32_t folded() const noexcept { return static_cast<uint32_t>(state_ ^ state_ >> 32); }

 private:
  uint64_t state_ = 1;
};

}  // namespace ibcoll
