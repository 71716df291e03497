// SPDX-License-Identifier: BSD-3-Clause
// The command line that runs an MPI program with ibcoll.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tools/ibcoll_mpi/detect.h"

namespace ibcoll::mpi_command {

// ibcoll's libraries for the MPIs; "" for a file that does not exist.
struct Libraries {
  std::string folder;
  std::string component_folder() const { return folder + "/ibcoll/openmpi"; }
  std::string interposition(Mpi mpi) const;
};
bool exists(const std::string& path);

struct Command {
  std::vector<std::pair<std::string, std::string>> environment;  // in addition to what is set
  std::vector<std::string> words;
  std::string why_not;  // "" or why it cannot be run
};

// `mpi`: what the user says, else kUnknown. `trace`: for IBCOLL_TRACE; "" for none.
Command command_for(const std::vector<std::string>& words, Mpi mpi, const std::string& trace,
                    const Libraries& libraries);

// For a POSIX shell.
std::string shell_line(const Command& command);

}  // namespace ibcoll::mpi_command
