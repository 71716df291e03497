// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/machine/wait_loop.h"

#include <sched.h>
#include <time.h>

#include <algorithm>

namespace ibcoll {
namespace {

constexpr uint32_t kYieldsPerCheck = 1024;
// Before a rank sleeps until it is woken. Yields measure how fast this machine is at the moment: in each one all that
// share the core may run. If these sleep already, yields take no time.
constexpr uint32_t kYieldsBeforeBell = 16;
constexpr uint64_t kTimeBeforeBellNs = 50'000;
constexpr uint32_t kSleepsPerCheck = 8;

uint64_t now_ns() noexcept {
  return static_cast<uint64_t>(Deadline::Clock::now().time_since_epoch() / std::chrono::nanoseconds(1));
}

}  // namespace

bool WaitLoop::should_sleep(bool for_a_leader) noexcept {
  if (!strategy_.sleeps()) return false;
  if (for_a_leader && strategy_.one_cpu()) return true;
  if (rests_ < kYieldsBeforeBell) return false;
  const uint64_t now = now_ns();
  if (sleep_at_ == 0) sleep_at_ = now + kTimeBeforeBellNs;
  return now >= sleep_at_;
}

bool WaitLoop::host_is_due() noexcept {
  const uint64_t now = now_ns();
  if (host_at_ == 0) host_at_ = now + host_factor() * kBeforeHostNs;
  return now >= host_at_;
}

void WaitLoop::host_progressed(bool moved) noexcept {
  host_at_ = now_ns() + (moved ? 0 : host_factor() * kHostSliceNs);
  if (moved) fresh();
}

bool WaitLoop::slept(bool woken) noexcept {
  if (woken) fresh();
  return ++sleeps_ % kSleepsPerCheck == 0;
}

bool WaitLoop::pause() noexcept {
  if (rests_ < UINT32_MAX) ++rests_;
  if (rests_ <= strategy_.yields()) {
    ::sched_yield();
    return rests_ % kYieldsPerCheck == 0;
  }
  const uint32_t longest = std::min(strategy_.longest_sleep_ns(), longest_rest_ns_);
  const uint32_t steps = std::max(1U, longest / strategy_.shortest_sleep_ns());
  const uint32_t step = std::min(rests_ - strategy_.yields(), steps);
  const timespec time{0, static_cast<long>(std::min(longest, step * strategy_.shortest_sleep_ns()))};
  ::nanosleep(&time, nullptr);
  return step == steps || step % 8 == 0;
}

}  // namespace ibcoll
