// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <fcntl.h>
#include <unistd.h>

namespace ibcoll {

// Occupies those of descriptors 0 to 2 that are closed, so that no file that is opened later gets such a number: what
// the program prints would land in it. To read or write them still fails (EBADF), and a program that is started does
// not inherit them. Returns which: a bit each.
inline unsigned occupy_low_descriptors() noexcept {
  for (unsigned occupied = 0;;) {
    const int fd = ::open("/", O_PATH | O_CLOEXEC);  // the lowest that is free
    if (fd < 0) return occupied;
    if (fd > STDERR_FILENO) {
      ::close(fd);
      return occupied;
    }
    occupied |= 1U << fd;
  }
}

}  // namespace ibcoll
