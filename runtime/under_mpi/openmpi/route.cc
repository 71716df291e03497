// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/under_mpi/openmpi/route.h"

#include <climits>

#include "runtime/under_mpi/core/route.h"
#include "runtime/under_mpi/openmpi/module.h"

namespace ibcoll::open_mpi {
namespace {

Module& module_of(const under_mpi::Communicator& comm) { return *static_cast<Module*>(comm.owner()); }

int allgather(const under_mpi::Communicator& comm, const void* send, void* recv, size_t bytes) {
  if (bytes > INT_MAX) return MPI_ERR_COUNT;
  Module& module = module_of(comm);
  const InsideOpenMpi inside;
  return module.run_previous<IBCOLL_SLOT(allgather)>(send, static_cast<int>(bytes), MPI_BYTE, recv,
                                                     static_cast<int>(bytes), MPI_BYTE, module.comm);
}

int allreduce_min(const under_mpi::Communicator& comm, int64_t* values, int count) {
  Module& module = module_of(comm);
  const InsideOpenMpi inside;
  return module.run_previous<IBCOLL_SLOT(allreduce)>(MPI_IN_PLACE, values, count, MPI_INT64_T, MPI_MIN, module.comm);
}

// The MPI layer calls the error handler with what a collective returns.
int raise(const under_mpi::Communicator&, int code) { return code; }

void retain_type(MPI_Datatype type) { OBJ_RETAIN(type); }
void release_type(MPI_Datatype type) { OBJ_RELEASE(type); }
void retain_op(MPI_Op op) { OBJ_RETAIN(op); }
void release_op(MPI_Op op) { OBJ_RELEASE(op); }

// Open MPI's own types, as for the collectives of intercommunicators, have no description for the user.
bool has_envelope(MPI_Datatype type) { return type->args != nullptr || ompi_datatype_is_predefined(type); }

}  // namespace

void install_route() {
  under_mpi::install({.name = "mca_coll_ibcoll.so",
                      .allgather = allgather,
                      .allreduce_min = allreduce_min,
                      .progress = advance_open_mpi,
                      .raise = raise,
                      .retain_type = retain_type,
                      .release_type = release_type,
                      .retain_op = retain_op,
                      .release_op = release_op,
                      .has_envelope = has_envelope,
                      .progresses = true});
}

}  // namespace ibcoll::open_mpi
