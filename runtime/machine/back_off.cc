// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/machine/back_off.h"

#include <sched.h>
#include <time.h>

#include <algorithm>

namespace ibcoll {
namespace {

// A yield costs about a microsecond. Ranks with a core of their own spin for about 50 us before they yield at all.
constexpr uint32_t kSpins = 2000;
constexpr uint32_t kYields = 2000;
constexpr uint32_t kYieldsPerCheck = 1024;
constexpr long kShortestSleepNs = 20'000;
constexpr long kLongestSleepNs = 500'000;
// Before a rank sleeps until it is woken. Yields are the better measure of how fast this machine is just now: each is a
// turn of all who share the core. Where these sleep already, they pass in no time.
constexpr uint32_t kYieldsBeforeBell = 16;
constexpr uint64_t kTimeBeforeBellNs = 50'000;
constexpr uint32_t kSleepsPerCheck = 8;

uint64_t now_ns() noexcept {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

}  // namespace

WaitStrategy::WaitStrategy(std::string_view mode, double ranks_per_core, bool one_cpu) : one_cpu_(one_cpu) {
  const bool shared = ranks_per_core > 1.0;
  if (mode == "spin" || (mode == "auto" && !shared)) {
    name_ = mode == "spin" ? "spin, then yield" : "spin, then yield, then sleep";
    spins_ = kSpins;
    yields_ = mode == "spin" ? UINT32_MAX : kYields;
  } else if (mode == "sleep") {
    name_ = "sleep";
    spins_ = 1;
    yields_ = 16;
  } else {
    name_ = "yield, then sleep";
    spins_ = 1;
    yields_ = kYields;
  }
}

bool WaitStrategy::Pause::tired(bool for_a_leader) noexcept {
  if (!strategy_.sleeps()) return false;
  if (for_a_leader && strategy_.one_cpu_) return true;
  if (count_ < kYieldsBeforeBell) return false;
  const uint64_t now = now_ns();
  if (tired_at_ == 0) tired_at_ = now + kTimeBeforeBellNs;
  return now >= tired_at_;
}

bool WaitStrategy::Pause::slept(bool woken) noexcept {
  if (woken) fresh();
  return ++sleeps_ % kSleepsPerCheck == 0;
}

bool WaitStrategy::Pause::pause() noexcept {
  if (count_ < UINT32_MAX) ++count_;
  if (count_ <= strategy_.yields_) {
    ::sched_yield();
    return count_ % kYieldsPerCheck == 0;
  }
  const uint64_t step = std::min<uint64_t>(count_ - strategy_.yields_, 25);
  const timespec time{0, std::min(kLongestSleepNs, static_cast<long>(step) * kShortestSleepNs)};
  ::nanosleep(&time, nullptr);
  return step == 25 || step % 8 == 0;
}

}  // namespace ibcoll
