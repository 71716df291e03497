// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/registration_cache/memlock.h"

#include <fmt/format.h>
#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace ibcoll {
namespace {

// A process with this capability may pin beyond its limit.
bool may_exceed_memlock() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3]{};
  return ::syscall(SYS_capget, &header, data) == 0 && (data[0].effective & (1U << CAP_IPC_LOCK)) != 0;
}

}  // namespace

uint64_t memlock_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || may_exceed_memlock())
    return kNoMemlock;
  return limit.rlim_cur;
}

std::string memlock_advice() {
  return fmt::format(
      "the limit of locked memory is {} KB (ulimit -l); raise it in /etc/security/limits.conf (memlock unlimited)",
      memlock_limit() / 1024);
}

}  // namespace ibcoll
