// SPDX-License-Identifier: BSD-3-Clause
// Whether the bytes of a derived type are one run in memory, in the order of its type map.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <optional>

namespace ibcoll::under_mpi {

struct Run {
  int64_t start = 0;  // from the buffer's address
  int64_t bytes = 0;
};

// Decodes the type's envelope, with all inner types. nullopt: gaps, a permuted order, or a kind of type that is not
// looked into.
std::optional<Run> run_of(MPI_Datatype handle);

}  // namespace ibcoll::under_mpi
