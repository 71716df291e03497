// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/ioctl.h>

#include "runtime/base/status.h"
#include "runtime/base/unique_fd.h"

namespace ibcoll::run {

// The end that a rank writes to, and the end that this process reads: a pipe, or a terminal of which the rank's end is
// as raw as one. Programs write each line at once to a terminal, and to a pipe only what fills a buffer.
struct OutputEnds {
  UniqueFd read_end;  // non-blocking
  UniqueFd write_end;
};

Result<OutputEnds> open_pipe();
// Reading from it ends with EIO. SYSTEM: there are none, or no more.
Result<OutputEnds> open_pseudo_terminal(const winsize& size);

}  // namespace ibcoll::run
