// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/shm/huge_pages.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <new>

#include "runtime/machine/own_thread.h"

namespace ibcoll::shm {
namespace {

constexpr int kCollapse = 25;  // MADV_COLLAPSE; the C library of Debian 12 does not name it

// The system call itself: other libraries replace the C library's function to notice freed memory, and this memory
// stays.
long advise(std::byte* memory, uint64_t bytes, int advice) noexcept {
  return ::syscall(SYS_madvise, memory, bytes, advice);
}

}  // namespace

void HugePages::end() noexcept {
  {
    const std::lock_guard guard(lock_);
    ends_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

void HugePages::make(std::byte* memory, uint64_t bytes, std::atomic<bool>& made) noexcept {
  const std::lock_guard guard(lock_);
  try {
    wanted_.push_back({memory, bytes, &made});
  } catch (const std::bad_alloc&) {
    return;
  }
  if (running_) return;
  if (thread_.joinable()) thread_.join();  // it has left the lock for the last time
  running_ = start_thread(thread_, "the node's memory stays in small pages", [this] { run(); });
  if (!running_) wanted_.clear();
}

void HugePages::run() noexcept {
  for (;;) {
    Wanted next;
    {
      const std::lock_guard guard(lock_);
      if (ends_ || wanted_.empty()) {
        running_ = false;
        return;
      }
      next = wanted_.back();
      wanted_.pop_back();
    }
    if (advise(next.memory, next.bytes, kCollapse) == 0) next.made->store(true, std::memory_order_release);
    // Mapped where and when it is used, and not counted as this rank's before others use it.
    advise(next.memory, next.bytes, MADV_DONTNEED);
  }
}

}  // namespace ibcoll::shm
