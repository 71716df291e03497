// SPDX-License-Identifier: BSD-3-Clause
// The component's MCA parameters: coll_ibcoll_priority, coll_ibcoll_collectives and coll_ibcoll_verbose.
#pragma once

#include "runtime/under_mpi/core/settings.h"

namespace ibcoll::open_mpi {

// For the component's mca_register_component_params. Returns an error code of Open MPI.
int register_parameters();

int priority();
// The settings of the environment, overridden by the parameters.
under_mpi::Settings settings_with_parameters();

}  // namespace ibcoll::open_mpi
