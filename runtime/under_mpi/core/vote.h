// SPDX-License-Identifier: BSD-3-Clause
// Agreement of the ranks of a communicator on one outcome, by the MPI's own allreduce.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "runtime/under_mpi/core/communicator.h"

namespace ibcoll::under_mpi {

// True on all ranks where `fine` is true on all. Otherwise the lowest rank on which it is not prints one line with its
// `error`, where that is not "". `least`, where given, becomes the least of all ranks in each place.
bool agree(const Communicator& comm, bool fine, const std::string& error, std::vector<int64_t>* least = nullptr);

}  // namespace ibcoll::under_mpi
