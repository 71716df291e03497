// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/machine/descriptors.h"

#include <dirent.h>
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "runtime/base/log.h"

namespace ibcoll {
namespace {

constexpr uint64_t kSpare = 32;  // for the program, which may need what was left

// Not by std::filesystem, which ends the process where memory runs out (libstdc++ 12).
uint64_t open_descriptors() noexcept {
  DIR* const folder = ::opendir("/proc/self/fd");
  if (folder == nullptr) return 0;
  uint64_t count = 0;
  while (::readdir(folder) != nullptr) ++count;
  ::closedir(folder);
  return count - std::min<uint64_t>(count, 2);  // . and ..
}

}  // namespace

Status ensure_descriptors(uint64_t more, const char* what, bool may_raise) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0)
    return error(IBCOLL_ERR_SYSTEM, "getrlimit(RLIMIT_NOFILE): {}", std::strerror(errno));
  const uint64_t used = open_descriptors(), needed = used + more;
  if (limit.rlim_cur == RLIM_INFINITY || needed + kSpare <= limit.rlim_cur) return {};
  const rlim_t before = limit.rlim_cur;
  if (may_raise) limit.rlim_cur = std::max<rlim_t>(before, std::min<rlim_t>(needed + kSpare, limit.rlim_max));
  if (limit.rlim_cur < needed || (limit.rlim_cur != before && ::setrlimit(RLIMIT_NOFILE, &limit) != 0))
    return error(IBCOLL_ERR_SYSTEM,
                 "{} needs {} descriptors, {} are open already, and the limit is {}: raise it (ulimit {}, LimitNOFILE= "
                 "of the service, --ulimit nofile= of the container)",
                 what, more, used, may_raise ? limit.rlim_max : before, may_raise ? "-Hn" : "-n");
  if (limit.rlim_cur == before) return {};
  log(LogLevel::kInfo, "the limit of descriptors was raised from {} to {}, as {} needs {}", before, limit.rlim_cur,
      what, more);
  return {};
}

}  // namespace ibcoll
