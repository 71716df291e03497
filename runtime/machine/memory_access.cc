// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/machine/memory_access.h"

#include <linux/futex.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace ibcoll {
namespace {

// The kernel reads a signal mask of eight bytes from there, and then refuses what to do with it.
bool readable(uint64_t word) noexcept {
  constexpr int kNoSuchChange = -1;
  return ::syscall(SYS_rt_sigprocmask, kNoSuchChange, word, nullptr, 8) == 0 || errno != EFAULT;
}

// The kernel adds 0 to the number there, in one atomic step, and wakes nobody.
bool writable(uint64_t word) noexcept {
  uint32_t unused = 0;
  constexpr int kAddNothing = FUTEX_OP(FUTEX_OP_ADD, 0, FUTEX_OP_CMP_LT, 0);
  return ::syscall(SYS_futex, &unused, FUTEX_WAKE_OP | FUTEX_PRIVATE_FLAG, 0, 0L, word, kAddNothing) >= 0 ||
         errno != EFAULT;
}

}  // namespace

const std::byte* first_inaccessible(ConstBytes memory, Access access) noexcept {
  static const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uint64_t>(memory.data()), end = begin + memory.size();
  for (uint64_t at = begin; at < end; at = (at / page + 1) * page) {
    const uint64_t word = at & ~uint64_t{7};  // in the same page
    if (!(access == Access::kRead ? readable(word) : writable(word))) return memory.data() + (at - begin);
  }
  return nullptr;
}

}  // namespace ibcoll
