// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/registration_cache/memlock.h"

#include <fmt/format.h>
#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fstream>

namespace ibcoll {
namespace {

// The kernel asks for capabilities in the initial user namespace, and a container of an unprivileged user has another.
bool in_initial_user_namespace() {
  std::ifstream map("/proc/self/uid_map");
  uint64_t inside = 0, outside = 0, count = 0;
  if (!map.is_open()) return true;
  return (map >> inside >> outside >> count) && inside == 0 && outside == 0 && count == UINT32_MAX;
}

// A process with this capability may pin beyond its limit.
bool may_exceed_memlock() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3]{};
  return ::syscall(SYS_capget, &header, data) == 0 && (data[0].effective & (1U << CAP_IPC_LOCK)) != 0 &&
         in_initial_user_namespace();
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
