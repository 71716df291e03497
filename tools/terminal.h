// SPDX-License-Identifier: BSD-3-Clause
// Questions about the terminal that a program writes to.
#pragma once

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace ibcoll {

// The size of the terminal that `fd` refers to; 24 x 80 where it has no size.
inline winsize terminal_size(int fd) {
  winsize size{};
  if (::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col != 0) return size;
  size.ws_row = 24;
  size.ws_col = 80;
  return size;
}

// `fd` is a terminal on which one line can be written over another.
inline bool overwrites_lines(int fd) {
  const char* const kind = std::getenv("TERM");
  return ::isatty(fd) == 1 && kind != nullptr && *kind != '\0' && std::string_view(kind) != "dumb";
}

}  // namespace ibcoll
