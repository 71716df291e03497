// SPDX-License-Identifier: BSD-3-Clause
// The interface through which core uses its host in an MPI: the component of Open MPI, or the interposition library.
// Core itself calls PMPI_ functions that are local (types, groups, packing); whatever communicates goes through here.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>

namespace ibcoll::under_mpi {

class Communicator;

// The functions return an error code of MPI (progress aside). They must never end in ibcoll again.
struct Route {
  const char* name = "";  // "libibcoll_pmpi_mpich.so", for messages

  // The MPI's own collectives on the communicator; both block.
  int (*allgather)(const Communicator& comm, const void* send, void* recv, size_t bytes) = nullptr;
  // In place: values[i] becomes the least of all ranks.
  int (*allreduce_min)(const Communicator& comm, int64_t* values, int count) = nullptr;

  // Advances the MPI without blocking; returns how much it moved. Called while ibcoll waits, from the thread that
  // waits, without a lock of core's. It may end in core's progress().
  int (*progress)() = nullptr;

  // A call failed in ibcoll after its start: has the communicator's error handler called with `code`, an error code of
  // MPI. What it returns is what the program's call returns.
  int (*raise)(const Communicator& comm, int code) = nullptr;

  // Keep alive what a nonblocking or persistent call uses until it is complete, as the program may free it in
  // between. release() may run inside of progress(). Not called for predefined ones. NULL: nothing needs to be kept.
  void (*retain_type)(MPI_Datatype type) = nullptr;
  void (*release_type)(MPI_Datatype type) = nullptr;
  void (*retain_op)(MPI_Op op) = nullptr;
  void (*release_op)(MPI_Op op) = nullptr;

  // Whether MPI_Type_get_envelope knows the type: an MPI makes types for itself without one. NULL: it knows all types.
  bool (*has_envelope)(MPI_Datatype type) = nullptr;

  // Nonblocking forms can run in ibcoll: while one is in flight, every call of the MPI that waits ends in progress().
  bool progresses = false;
  // Operations of the program may run wherever ibcoll is advanced. Otherwise nonblocking reductions with them fall
  // through.
  bool runs_program_while_advancing = true;
  // The MPI itself refuses equal send and receive buffers (MPICH does). Otherwise they are taken for MPI_IN_PLACE.
  bool refuses_aliases = false;
};

// Once, before anything else of core. Copied.
void install(const Route& route) noexcept;
const Route& route() noexcept;

}  // namespace ibcoll::under_mpi
