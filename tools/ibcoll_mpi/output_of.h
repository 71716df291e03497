// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

namespace ibcoll::mpi_command {

// Returns what a program writes to standard output and error until it ends, or until 5 seconds have passed: it is then
// killed. "" also where it cannot be started.
std::string output_of(const std::vector<std::string>& words);

}  // namespace ibcoll::mpi_command
