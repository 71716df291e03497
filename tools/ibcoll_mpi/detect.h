// SPDX-License-Identifier: BSD-3-Clause
// Which MPI a command line belongs to.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace ibcoll::mpi_command {

enum class Mpi { kUnknown, kOpenMpi, kMpich };
const char* name_of(Mpi mpi);

// The program that starts the ranks. kNone: the first word is the program itself. kSlurm and kOther belong to no MPI.
enum class Launcher { kNone, kOpenMpi, kHydra, kSlurm, kOther };

struct Found {
  Launcher launcher = Launcher::kOther;
  Mpi of_launcher = Mpi::kUnknown;
  Mpi of_program = Mpi::kUnknown;
  size_t program = 0;  // the word that tells the MPI of the program; 0 with kUnknown
  bool is_python = false;
};

// Looks at the first word as a launcher, by its answer to --version, and then for the first word that is a program
// which loads an MPI, or a Python whose mpi4py does.
Found detect(std::span<const std::string> words);

}  // namespace ibcoll::mpi_command
