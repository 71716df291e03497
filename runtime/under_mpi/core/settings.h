// SPDX-License-Identifier: BSD-3-Clause
// IBCOLL_MPI, IBCOLL_MPI_COLLECTIVES and IBCOLL_MPI_VERBOSE of this process. What decides is what all ranks agree on:
// see job.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/under_mpi/core/collective.h"

namespace ibcoll::under_mpi {

struct Settings {
  bool on = true;                                   // IBCOLL_MPI=on|off
  uint32_t collectives = (1u << kCollectives) - 1;  // bit i: Collective i
  // IBCOLL_MPI_VERBOSE: 0 errors only; 1 the ranks' common lines and, at the end, a line per collective from rank 0; 2
  // these lines from every rank.
  int verbose = 0;
  std::string error;  // what is malformed; "" when nothing is. The job then does not start.
};

// From the environment.
Settings read_settings();
// "allreduce,bcast", "all", or "^alltoallw" for all but these, into a set. False: *error says what is wrong.
bool parse_collectives(std::string_view text, uint32_t* collectives, std::string* error);

// The settings in force: the environment's, unless use_settings() came before the job started (parameters of the MPI).
const Settings& settings();
void use_settings(const Settings& settings);

}  // namespace ibcoll::under_mpi
