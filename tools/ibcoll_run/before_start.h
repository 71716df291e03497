// SPDX-License-Identifier: BSD-3-Clause
// Waits of the launcher before any rank runs, without an event loop: all have a limit, and Ctrl-C ends them.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "bootstrap/socket_address.h"

namespace ibcoll::run {

using Deadline = std::chrono::steady_clock::time_point;

// Until `fd` can be read. TIMEOUT: not before the deadline. SIGINT, SIGTERM and SIGHUP, which the process must have
// blocked, end the process as if they were not.
Status wait_readable(int fd, Deadline deadline);

// The text of a file, of a pipe too. INVALID_ARGUMENT: it cannot be read, is above 16 MB, or does not end within 10 s.
Result<std::string> read_text_file(const std::string& path);

// The addresses of a host. Waits 5 seconds for the name server, and says so after the first.
// SYSTEM: none known. TIMEOUT: no answer.
Result<std::vector<SocketAddress>> look_up(const std::string& host);

}  // namespace ibcoll::run
