// SPDX-License-Identifier: BSD-3-Clause
// Floating-point formats of 16 bits, by their definition: sign, exponent, fraction.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace ibcoll {

struct ShortFloats {
  int fraction_bits;
  int bias;

  int exponents() const { return 1 << (15 - fraction_bits); }
  // The value; of infinity that which would come next, if `extended`.
  double value(uint16_t bits, bool extended = false) const {
    const int exponent = (bits & 0x7fff) >> fraction_bits, fraction = bits & ((1 << fraction_bits) - 1);
    const double sign = bits & 0x8000 ? -1 : 1;
    if (exponent == exponents() - 1 && !extended)
      return sign * (fraction ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity());
    const int whole = exponent == 0 ? 0 : 1 << fraction_bits;
    return sign * std::ldexp(whole + fraction, std::max(exponent, 1) - bias - fraction_bits);
  }
  // The nearest one of all values; if two are equally near, the one with an even fraction.
  uint16_t nearest(double number) const {
    const uint16_t sign = std::signbit(number) ? 0x8000 : 0;
    const auto infinity = static_cast<uint16_t>((exponents() - 1) << fraction_bits);
    if (std::isnan(number)) return infinity | 1;
    const double magnitude = std::fabs(number);
    uint16_t below = 0, above = infinity;  // by bisection: values grow with their bits
    if (magnitude >= value(infinity, true)) return sign | infinity;
    while (above - below > 1) {
      const auto middle = static_cast<uint16_t>((below + above) / 2);
      (value(middle) <= magnitude ? below : above) = middle;
    }
    const double under = magnitude - value(below), over = value(above, true) - magnitude;
    const bool up = over < under || (over == under && below % 2 == 1);
    return sign | (up ? above : below);
  }
  // Zeros, subnormal ones, around 1, what rounds up to infinity, infinities, NaN; and many others.
  std::vector<uint16_t> samples() const {
    const auto infinity = static_cast<uint16_t>((exponents() - 1) << fraction_bits);
    const auto one = static_cast<uint16_t>(bias << fraction_bits);
    std::vector<uint16_t> samples;
    for (const uint16_t sign : {0, 0x8000}) {
      for (const int bits : {0, 1, 2, (1 << fraction_bits) - 1, 1 << fraction_bits, one - 1, one + 0, one + 1,
                             infinity - 1, infinity + 0, infinity + 1, 0x7fff})
        samples.push_back(static_cast<uint16_t>(bits | sign));
    }
    for (uint32_t bits = 77; bits < 0x10000; bits += 1999) samples.push_back(static_cast<uint16_t>(bits));
    return samples;
  }
};

inline constexpr ShortFloats kHalves{10, 15}, kBrainFloats{7, 127};

}  // namespace ibcoll
