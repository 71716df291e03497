// SPDX-License-Identifier: BSD-3-Clause
// Random numbers of the simulator: xoshiro256** seeded by splitmix64 (Blackman and Vigna, public domain algorithms).
// Integers only and no std:: distributions, so that a seed gives the same run with every compiler and library.
#pragma once

#include <cstdint>

#include "runtime/base/hash.h"

namespace ibcoll::sim {

// One step of splitmix64; also good for mixing words into a hash.
constexpr uint64_t mix64(uint64_t x) noexcept { return scramble(x + kGoldenRatio); }

class Random {
  __extension__ using Wide = unsigned __int128;

 public:
  explicit Random(uint64_t seed) noexcept : seed_(seed) {
    uint64_t x = seed;
    for (uint64_t& word : state_) word = x = mix64(x);
  }

  // A generator that depends on the seed and on `stream` only, not on how many numbers were drawn from this one. So one
  // part of a test can draw more without changing what another part sees.
  Random split(uint64_t stream) const noexcept { return Random(mix64(seed_ ^ mix64(stream + 1))); }

  uint64_t next() noexcept {
    const uint64_t result = rotate(state_[1] * 5, 7) * 9;
    const uint64_t t = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= t;
    state_[3] = rotate(state_[3], 45);
    return result;
  }

  // [0, bound); 0 for bound 0. The bias of 2^-64 x bound is of no matter here.
  uint64_t below(uint64_t bound) noexcept { return static_cast<uint64_t>((static_cast<Wide>(next()) * bound) >> 64); }
  // [low, high], both included.
  int64_t between(int64_t low, int64_t high) noexcept {
    return low + static_cast<int64_t>(below(static_cast<uint64_t>(high - low) + 1));
  }
  // True once in `n` times on average; never for 0.
  bool one_in(uint64_t n) noexcept { return n != 0 && below(n) == 0; }
  bool permille(uint32_t chances) noexcept { return chances != 0 && below(1000) < chances; }

 private:
  static constexpr uint64_t rotate(uint64_t x, int k) noexcept { return (x << k) | (x >> (64 - k)); }

  uint64_t seed_;
  uint64_t state_[4];
};

}  // namespace ibcoll::sim
