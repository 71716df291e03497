// SPDX-License-Identifier: BSD-3-Clause
// Needed with UCX 1.13, and taken to be needed with all versions, as one is known only after loading. UCX reads these
// files when it is loaded and started. Without them it prints several lines of its own on each rank, and does not start.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "runtime/base/status.h"
#include "runtime/base/unique_fd.h"

namespace ibcoll::ucx {

// To be asked before UCX is loaded. SYSTEM: which file is not there.
inline Status find_needed_files() {
  for (const char* const file : {"/proc/sys/kernel/random/boot_id", "/proc/sys/net/core/somaxconn"}) {
    if (const UniqueFd opened(::open(file, O_RDONLY | O_CLOEXEC)); !opened)
      return error(IBCOLL_ERR_SYSTEM, "ucx: UCX does not start without {}: {}; mount /proc, with its folder sys", file,
                   std::strerror(errno));
  }
  return {};
}

}  // namespace ibcoll::ucx
