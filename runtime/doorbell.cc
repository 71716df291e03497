// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/doorbell.h"

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

bool Doorbell::sleep(uint32_t rung, uint32_t longest_ns) noexcept {
  const timespec longest{0, static_cast<long>(longest_ns)};
  std::atomic<uint32_t>& word = own().rung;
  sleeps_.fetch_add(1, std::memory_order_relaxed);
  if (futex(word, FUTEX_WAIT, rung, &longest) != 0 && errno == ETIMEDOUT) return false;
  times_woken_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

void Doorbell::wake() noexcept {
  const uint64_t sleepers = own().sleepers.exchange(0, std::memory_order_acq_rel);
  for (int i = 0; i < static_cast<int>(bells_.size()); ++i) {
    if (i == self_ || !(sleepers & bit(i))) continue;
    std::atomic<uint32_t>& word = bells_[static_cast<size_t>(i)]->rung;
    word.fetch_add(1, std::memory_order_release);
    futex(word, FUTEX_WAKE, INT_MAX, nullptr);
    ++times_others_woken_;
  }
}

}  // namespace ibcoll
