// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/types.h>

#include <string_view>
#include <vector>

namespace ibcoll::run {

// Sends the signal to the processes of these groups that have a handler for it. It would kill the others, and a process
// may remove its handler at any time, so each is stopped while it is examined and signalled.
void signal_those_that_catch(int signal, const std::vector<pid_t>& groups);

// For the function above: process group and state out of /proc/PID/stat, 0 when it is damaged; whether SigCgt of
// /proc/PID/status has the signal.
struct ProcessStat {
  pid_t group = 0;
  char state = 0;
};
ProcessStat parse_stat(std::string_view stat);
bool catches(std::string_view status, int signal);

}  // namespace ibcoll::run
