// SPDX-License-Identifier: BSD-3-Clause
// The collectives of MPI that ibcoll can run, and why one was left to the MPI.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace ibcoll::under_mpi {

// Numbered as ibcoll_collective_t; alltoallw, which ibcoll runs as an alltoallv of packed blocks, comes last.
enum class Collective : uint8_t {
  kBarrier,
  kBcast,
  kAllgather,
  kAllgatherv,
  kAlltoall,
  kAlltoallv,
  kAllreduce,
  kGather,
  kGatherv,
  kScatter,
  kScatterv,
  kReduce,
  kReduceScatter,
  kReduceScatterBlock,
  kScan,
  kExscan,
  kAlltoallw,
};
inline constexpr int kCollectives = 17;

// "reduce_scatter_block"
std::string_view name_of(Collective collective) noexcept;
std::optional<Collective> collective_of(std::string_view name) noexcept;

// Why the MPI runs a call itself. All ranks of the communicator find the same reason, as each is a matter of what they
// share (BAD_ARGUMENTS aside: the MPI then refuses the call).
enum class Reason : uint8_t {
  kNone,
  kOff,         // IBCOLL_MPI=off on some rank
  kNotListed,   // IBCOLL_MPI_COLLECTIVES of some rank lacks the collective
  kOneProcess,  // a communicator of one process
  kIntercommunicator,
  kOtherJob,             // a member is not in MPI_COMM_WORLD
  kNoContext,            // ibcoll did not start; one line said why
  kNoTeam,               // a team could not be made; one line said why
  kBeforeFirstBlocking,  // nonblocking, and no blocking collective has made the communicator's team yet
  kOperation,            // the operation does not go with the type, or has no counterpart
  kEmptyType,            // a reduction of elements of 0 bytes
  kBadArguments,
  kNotRunning,  // before MPI_Init, or after MPI_Finalize began
  kNoProgress,  // nonblocking, and the MPI offers no way to advance ibcoll from its own waits
  kMaybeMpis,   // the MPI itself makes such calls, at times that differ between ranks
  kNoRoom,      // a rank has as many persistent requests as it may have teams for
  kRefused,     // persistent, and the MPI refuses the arguments of some rank
  kMismatch,    // earlier calls on the communicator did not match; one line said so
};
inline constexpr int kReasons = 18;

// "the communicator has one process"
std::string_view text_of(Reason reason) noexcept;

}  // namespace ibcoll::under_mpi
