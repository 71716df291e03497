// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/types.h>

#include <string_view>
#include <vector>

namespace ibcoll::run {

// The processes of these groups that have a handler for the signal. To those that have none it would mean death.
std::vector<pid_t> processes_that_catch(int signal, const std::vector<pid_t>& groups);

// For the function above: process group out of /proc/PID/stat, 0 when it is damaged; whether SigCgt of /proc/PID/status
// has the signal.
pid_t group_in_stat(std::string_view stat);
bool catches(std::string_view status, int signal);

}  // namespace ibcoll::run
