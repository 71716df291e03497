// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/under_mpi/openmpi/lifetime.h"

#include <atomic>

#include "runtime/under_mpi/core/job.h"
#include "runtime/under_mpi/openmpi/module.h"

namespace ibcoll::open_mpi {
namespace {

Module* world = nullptr;
std::atomic<bool> running = false;

void init_ends(int, char**, int, int*) {
  if (world == nullptr) return;
  running = true;
  under_mpi::start_job(world->communicator());
  under_mpi::everybody_knows_the_job();
}

// Before Open MPI deletes the attributes of MPI_COMM_SELF: what programs do there is Open MPI's own.
void finalize_begins() {
  running = false;
  if (world != nullptr) under_mpi::end_job(world->communicator());
}

ompi_hook_base_component_t hooks() {
  ompi_hook_base_component_t hooks{};
  hooks.hookm_mpi_init_bottom = init_ends;
  hooks.hookm_mpi_finalize_top = finalize_begins;
  return hooks;
}
ompi_hook_base_component_t registered = hooks();

}  // namespace

bool mpi_is_running() { return running.load(std::memory_order_relaxed); }

void remember_world(Module* module) { world = module; }

int watch_lifetime() { return ompi_hook_base_register_callbacks(&registered); }
void unwatch_lifetime() { ompi_hook_base_deregister_callbacks(&registered); }

}  // namespace ibcoll::open_mpi
