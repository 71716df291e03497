// SPDX-License-Identifier: BSD-3-Clause
// Calls of libc that this library takes the place of.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "tools/rdma_in_memory/memory.h"

namespace {

// UCX takes only devices with a character device that this user may open.
const char* stand_in(const char* path) {
  return path != nullptr && std::strcmp(path, "/dev/infiniband/uverbs_memory0") == 0 ? "/dev/null" : path;
}

}  // namespace

extern "C" {

int stat(const char* path, struct stat* found) noexcept { return ::fstatat(AT_FDCWD, stand_in(path), found, 0); }
int access(const char* path, int mode) noexcept { return ::faccessat(AT_FDCWD, stand_in(path), mode, 0); }

// The child would write to the registered memory of its parent. What starts programs by vfork or posix_spawn works:
// system, popen, subprocess of Python.
pid_t fork() noexcept {
  if (!ibcoll::rdma_in_memory::has_pages_in_file()) {
    static auto* const next = reinterpret_cast<pid_t (*)()>(::dlsym(RTLD_NEXT, "fork"));
    return next();
  }
  std::fputs(
      "RDMA device in memory: fork is refused: a child would share the registered memory of this process; fork before "
      "memory is registered, or start programs by posix_spawn\n",
      stderr);
  errno = ENOTSUP;
  return -1;
}

}  // extern "C"
