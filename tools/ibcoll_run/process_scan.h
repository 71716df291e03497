// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/types.h>

#include <string_view>
#include <vector>

namespace ibcoll::run {

// The signal, to the processes of these groups that have a handler for it. To those that have none it would mean death,
// and one may give its handler up at any time: each is stopped while it is looked at and signalled.
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
