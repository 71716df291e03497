// SPDX-License-Identifier: BSD-3-Clause
// x' = a x mod 2^46, as numbers between 0 and 1. Source: D. Bailey et al., "The NAS Parallel Benchmarks", NASA report
// RNR-94-007, 1994, section 2.2.
#pragma once

#include <cstdint>

namespace apps {

class RandomNumbers {
 public:
  explicit RandomNumbers(uint64_t seed) : x_(seed) {}
  // Skips `count` numbers.
  void skip(uint64_t count) {
    for (uint64_t power = kFactor; count > 0; count >>= 1, power = times(power, power))
      if (count & 1) x_ = times(x_, power);
  }
  double next() {
    x_ = times(x_, kFactor);
    return static_cast<double>(x_) * 0x1p-46;
  }

 private:
  static constexpr uint64_t kFactor = 1220703125;  // 5^13
  // Overflow of 64 bits takes nothing away from the lower 46.
  static uint64_t times(uint64_t a, uint64_t b) { return a * b & ((uint64_t{1} << 46) - 1); }
  uint64_t x_;
};

}  // namespace apps
