// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/under_mpi/openmpi/module.h"

#include "runtime/under_mpi/openmpi/collectives.h"
#include "runtime/under_mpi/openmpi/lifetime.h"
#include "runtime/under_mpi/openmpi/parameters.h"
#include "runtime/under_mpi/openmpi/presence.h"

namespace ibcoll::open_mpi {

thread_local int InsideOpenMpi::depth_ = 0;

namespace {

// No communication: MPI_Comm_idup calls it from inside of Open MPI's progress.
int enable(mca_coll_base_module_t* base, ompi_communicator_t* comm) {
  Module& module = module_of(base);
  module.comm = comm;
  new (module.storage) under_mpi::Communicator(comm, &module);
  module.enabled = true;
  if (comm == MPI_COMM_WORLD) remember_world(&module);
  install_collectives(module, *comm->c_coll);
  return OMPI_SUCCESS;
}

// Open MPI's memory for new objects is not zeroed.
void construct(Module* module) {
  const opal_object_t object = module->super.super;
  *module = Module{};
  module->super.super = object;
  module->super.coll_module_enable = enable;
}

void destruct(Module* module) {
  if (!module->enabled) return;
  module->communicator().~Communicator();
  remove_collectives(*module);
}

}  // namespace

OBJ_CLASS_DECLARATION(Module);
OBJ_CLASS_INSTANCE(Module, mca_coll_base_module_t, construct, destruct);

mca_coll_base_module_t* query(ompi_communicator_t* comm, int* priority) {
  static bool served = false;
  *priority = open_mpi::priority();
  if (OMPI_COMM_IS_INTER(comm) || ompi_comm_size(comm) < 2) return nullptr;
  if (comm == MPI_COMM_WORLD) served = all_have_component(comm);  // the first communicator of all
  if (!served || !all_of_this_job(comm)) return nullptr;
  Module* const module = OBJ_NEW(Module);
  return module == nullptr ? nullptr : &module->super;
}

}  // namespace ibcoll::open_mpi
