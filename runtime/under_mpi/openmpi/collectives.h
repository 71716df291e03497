// SPDX-License-Identifier: BSD-3-Clause
// All collectives that the component takes over.
#pragma once

#include "runtime/under_mpi/openmpi/module.h"

namespace ibcoll::open_mpi {

// Takes the slots of the module, above what `table` has.
void install_collectives(Module& module, const Table& table);
// Releases what the slots ran before.
void remove_collectives(Module& module);

}  // namespace ibcoll::open_mpi
