// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/machine/doorbell.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <climits>

namespace ibcoll {
namespace {

// Between processes, so none of the PRIVATE kind.
long futex(std::atomic<uint32_t>& word, int operation, uint32_t value, const timespec* time) noexcept {
  return ::syscall(SYS_futex, &word, operation, value, time, nullptr, 0);
}

}  // namespace

bool Doorbell::sleep(int local, uint32_t wakeups, uint32_t longest_ns) noexcept {
  const timespec longest{0, static_cast<long>(longest_ns)};
  sleeps_.fetch_add(1, std::memory_order_relaxed);
  if (futex(bell(local).wakeups, FUTEX_WAIT, wakeups, &longest) != 0 && errno == ETIMEDOUT) return false;
  times_woken_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

void Doorbell::wake() noexcept {
  own().subscribed.store(0, std::memory_order_relaxed);
  own().wakeups.fetch_add(1, std::memory_order_acq_rel);
  const long woken = futex(own().wakeups, FUTEX_WAKE, INT_MAX, nullptr);
  if (woken > 0) times_others_woken_ += static_cast<uint64_t>(woken);
}

}  // namespace ibcoll
