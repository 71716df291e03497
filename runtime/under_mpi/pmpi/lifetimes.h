// SPDX-License-Identifier: BSD-3-Clause
// Types and operations that the program frees while a collective uses them: MPI_Type_free and MPI_Op_free wait for it.
#pragma once

#include <mpi.h>

namespace ibcoll::under_mpi {

void retain_type(MPI_Datatype type);
void release_type(MPI_Datatype type);
void retain_op(MPI_Op op);
void release_op(MPI_Op op);

}  // namespace ibcoll::under_mpi
