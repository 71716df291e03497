// SPDX-License-Identifier: BSD-3-Clause
// When a wait ends at the latest.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace ibcoll {

class Deadline {
 public:
  using Clock = std::chrono::steady_clock;

  constexpr Deadline(Clock::time_point at) noexcept : at_(at) {}
  static Deadline after_ns(uint64_t ns) noexcept {
    return Deadline(Clock::now() + std::chrono::nanoseconds(static_cast<int64_t>(ns)));
  }
  // As a setting says it: infinity is never.
  static Deadline after_seconds(double seconds) noexcept {
    constexpr double kCentury = 3e9;
    return seconds < kCentury ? after_ns(static_cast<uint64_t>(seconds * 1e9)) : never();
  }
  // For waits that certainly end in another way. Reads no clock.
  static constexpr Deadline never() noexcept { return Deadline(Clock::time_point::max()); }

  bool passed() const noexcept { return !is_never() && Clock::now() >= at_; }
  // Nanoseconds until the deadline, `most` at most; 0 after it.
  uint64_t left_ns(uint64_t most) const noexcept {
    if (is_never()) return most;
    const std::chrono::nanoseconds left = at_ - Clock::now();
    return std::min(most, static_cast<uint64_t>(std::max<int64_t>(left.count(), 0)));
  }

 private:
  constexpr bool is_never() const noexcept { return at_ == Clock::time_point::max(); }
  Clock::time_point at_;
};

}  // namespace ibcoll
