// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/verbs/objects.h"

#include <fmt/format.h>

#include "runtime/registration_cache/memlock.h"

namespace ibcoll::verbs {

std::string advice(std::string_view call, int code) {
  // The library hands on the error of the last way that it tried, so the code says little.
  if (call.starts_with("ibv_open_device"))
    return "may this user open /dev/infiniband/uverbs*? (group rdma, or the udev rules of rdma-core; see dmesg)";
  switch (code) {
    case ENOMEM:
    case EAGAIN:
      if (memlock_limit() != kNoMemlock && (call.starts_with("ibv_reg_mr") || call.starts_with("ibv_create")))
        return memlock_advice();
      return "the device, or the machine's memory, is used up; end other jobs that use it";
    case EPERM:
    case EACCES:
      return "may this user use the device? (group rdma, or the udev rules of rdma-core)";
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

Status verbs_error(std::string_view device, std::string_view call, int code) noexcept {
  return error(code == ENOMEM ? IBCOLL_ERR_NO_MEMORY : IBCOLL_ERR_SYSTEM, "{}: {}: {}; {}", device, call,
               std::strerror(code), text_or("see dmesg", [&] { return advice(call, code); }));
}

std::string registering(size_t bytes) noexcept {
  return text_or("ibv_reg_mr", [&] { return fmt::format("ibv_reg_mr of {} bytes", bytes); });
}

}  // namespace ibcoll::verbs
