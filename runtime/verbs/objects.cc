// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/verbs/objects.h"

#include <sys/resource.h>

namespace ibcoll::verbs {
namespace {

std::string memlock_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) != 0) return "unknown";
  if (limit.rlim_cur == RLIM_INFINITY) return "unlimited";
  return fmt::format("{} KB", limit.rlim_cur / 1024);
}

}  // namespace

std::string advice(std::string_view call, int code) {
  switch (code) {
    case ENOMEM:
    case EAGAIN:
      if (call.starts_with("ibv_reg_mr") || call.starts_with("ibv_create"))
        return fmt::format(
            "the limit of locked memory is {} (ulimit -l); raise it in /etc/security/limits.conf (memlock unlimited)",
            memlock_limit());
      return "the device is out of resources; end other jobs that use it";
    case EPERM:
    case EACCES:
      return "may this user open /dev/infiniband/uverbs*? (group rdma, or the udev rules of rdma-core)";
    case EINVAL:
      return "the device refuses these parameters; see its limits with ibv_devinfo -v";
    case ENODEV:
    case EIO:
      return "is the device still there? (ibv_devinfo, dmesg)";
    case ETIMEDOUT:
    case ENETUNREACH:
    case EHOSTUNREACH:
      return "does the peer's address answer? (ping the address of the GID, ibv_devinfo -v)";
    default:
      return "see dmesg and ibv_devinfo -v";
  }
}

Status verbs_error(std::string_view device, std::string_view call, int code) {
  return error(code == ENOMEM ? IBCOLL_ERR_NO_MEMORY : IBCOLL_ERR_SYSTEM, "{}: {}: {}; {}", device, call,
               std::strerror(code), advice(call, code));
}

}  // namespace ibcoll::verbs
