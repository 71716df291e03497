// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/machine/descriptors.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <utility>

#include "runtime/base/log.h"
#include "runtime/base/low_descriptors.h"

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

// The lock of all HighDescriptors. A plain mutex that is never destroyed: destructors of the program may still use it.
constinit std::mutex low_mutex;
constinit int low_users = 0;
constinit unsigned low_occupied = 0;  // a bit each

// One that the program has replaced or closed since is not ibcoll's to close.
void release_low() noexcept {
  const unsigned occupied = std::exchange(low_occupied, 0);
  for (int fd = 0; fd <= STDERR_FILENO; ++fd)
    if ((occupied >> fd & 1U) != 0 && (::fcntl(fd, F_GETFL) & O_PATH) != 0) ::close(fd);
}

void lock_low() { low_mutex.lock(); }
void unlock_low() { low_mutex.unlock(); }

// The threads that would release them are not in the child.
void release_in_child() {
  if (std::exchange(low_users, 0) > 0) release_low();
  low_mutex.unlock();
}

}  // namespace

HighDescriptors::HighDescriptors() noexcept {
  [[maybe_unused]] static const int watches = ::pthread_atfork(&lock_low, &unlock_low, &release_in_child);
  const int reason = errno;
  const std::lock_guard lock(low_mutex);
  ++low_users;
  low_occupied |= occupy_low_descriptors();
  errno = reason;
}

HighDescriptors::~HighDescriptors() {
  const int reason = errno;
  const std::lock_guard lock(low_mutex);
  if (low_users > 0 && --low_users == 0) release_low();  // none: in a child
  errno = reason;
}

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
