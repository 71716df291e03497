// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_run/pseudo_terminal.h"

#include <fcntl.h>
#include <stdlib.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace ibcoll::run {

Result<OutputEnds> open_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    return error(IBCOLL_ERR_SYSTEM, "pipe2: {}; raise the limit of open files (ulimit -n)", std::strerror(errno));
  }
  OutputEnds pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return pipe;
}

Result<OutputEnds> open_pseudo_terminal(const winsize& size) {
  OutputEnds terminal;
  const auto failed = [](const char* call) {
    return error(IBCOLL_ERR_SYSTEM,
                 "{}: {}; raise the limit of open files (ulimit -n) or of pseudo-terminals "
                 "(/proc/sys/kernel/pty/max), or say --no-pty",
                 call, std::strerror(errno));
  };
  terminal.read_end.reset(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!terminal.read_end) return failed("posix_openpt");
  const int leader = terminal.read_end.get();
  if (::grantpt(leader) != 0 || ::unlockpt(leader) != 0) return failed("unlockpt");
  terminal.write_end.reset(::ioctl(leader, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!terminal.write_end) return failed("TIOCGPTPEER");
  const int rank_end = terminal.write_end.get();
  termios how{};
  if (::tcgetattr(rank_end, &how) != 0) return failed("tcgetattr");
  ::cfmakeraw(&how);  // bytes as they are: the user's own terminal makes "\r\n" of a newline
  if (::tcsetattr(rank_end, TCSANOW, &how) != 0) return failed("tcsetattr");
  ::ioctl(rank_end, TIOCSWINSZ, &size);
  ::fcntl(leader, F_SETFL, O_NONBLOCK);
  return terminal;
}

}  // namespace ibcoll::run
