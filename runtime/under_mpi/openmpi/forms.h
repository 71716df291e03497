// SPDX-License-Identifier: BSD-3-Clause
// The three forms of a collective, as functions for the slots of a module: what core does not run goes to the module
// that Open MPI would have used.
#pragma once

#include "runtime/under_mpi/core/collectives.h"
#include "runtime/under_mpi/openmpi/lifetime.h"
#include "runtime/under_mpi/openmpi/module.h"
#include "runtime/under_mpi/openmpi/request.h"

namespace ibcoll::open_mpi {

// One collective. `Describe` makes core's call of the arguments that precede the communicator.
template <auto Describe, class Blocking, class Nonblocking, class Persistent>
struct Forms;

template <class... Arguments, under_mpi::Call (*Describe)(Arguments...), class Blocking, class Nonblocking,
          class Persistent>
struct Forms<Describe, Blocking, Nonblocking, Persistent> {
  static int blocking(Arguments... arguments, ompi_communicator_t* comm, mca_coll_base_module_t* base) {
    Module& module = module_of(base);
    if (mpi_is_running() && !InsideOpenMpi::now()) {
      const int code = under_mpi::run(module.communicator(), Describe(arguments...));
      if (code != under_mpi::kFallsThrough) return code;
    }
    const InsideOpenMpi inside;
    return module.run_previous<Blocking>(arguments..., comm);
  }

  static int nonblocking(Arguments... arguments, ompi_communicator_t* comm, ompi_request_t** request,
                         mca_coll_base_module_t* base) {
    Module& module = module_of(base);
    if (mpi_is_running()) {
      const int code = start_nonblocking(module, Describe(arguments...), request);
      if (code != under_mpi::kFallsThrough) return code;
    }
    return module.run_previous<Nonblocking>(arguments..., comm, request);
  }

  static int persistent(Arguments... arguments, ompi_communicator_t* comm, ompi_info_t* info, ompi_request_t** request,
                        mca_coll_base_module_t* base) {
    Module& module = module_of(base);
    if (mpi_is_running()) {
      const int code = make_persistent(module, Describe(arguments...), request);
      if (code != under_mpi::kFallsThrough) return code;
    }
    return module.run_previous<Persistent>(arguments..., comm, info, request);
  }

  // With what preceded each slot; a slot that nothing preceded stays empty, as there is nothing to fall through to.
  static void install(Module& module, const Table& table) {
    module.take<Blocking>(table, blocking);
    module.take<Nonblocking>(table, nonblocking);
    module.take<Persistent>(table, persistent);
  }
  static void remove(Module& module) {
    module.give_back<Blocking>();
    module.give_back<Nonblocking>();
    module.give_back<Persistent>();
  }
};

}  // namespace ibcoll::open_mpi
