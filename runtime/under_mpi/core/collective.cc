// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/under_mpi/core/collective.h"

#include <array>

namespace ibcoll::under_mpi {

namespace {

constexpr std::array<std::string_view, kCollectives> kNames = {
    "barrier", "bcast",   "allgather", "allgatherv", "alltoall", "alltoallv",      "allreduce",
    "gather",  "gatherv", "scatter",   "scatterv",   "reduce",   "reduce_scatter", "reduce_scatter_block",
    "scan",    "exscan",  "alltoallw"};

constexpr std::array<std::string_view, kReasons> kTexts = {
    "none",
    "IBCOLL_MPI is off",
    "not in IBCOLL_MPI_COLLECTIVES",
    "the communicator has one process",
    "an intercommunicator",
    "a member is not in MPI_COMM_WORLD",
    "ibcoll did not start",
    "no team could be made",
    "nonblocking before the first blocking collective of the communicator",
    "ibcoll has no such operation on the type",
    "elements of 0 bytes",
    "the MPI refuses the arguments",
    "MPI is not running",
    "the MPI cannot advance ibcoll while it waits",
    "calls of this kind may be the MPI's own",
    "too many persistent requests",
    "the MPI refuses the arguments of a rank",
    "earlier calls did not match"};

}  // namespace

std::string_view name_of(Collective collective) noexcept { return kNames[static_cast<size_t>(collective)]; }

std::optional<Collective> collective_of(std::string_view name) noexcept {
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<Collective>(i);
  }
  return std::nullopt;
}

std::string_view text_of(Reason reason) noexcept { return kTexts[static_cast<size_t>(reason)]; }

}  // namespace ibcoll::under_mpi
