// SPDX-License-Identifier: BSD-3-Clause
// The route by which core uses Open MPI.
#pragma once

namespace ibcoll::open_mpi {

void install_route();

}  // namespace ibcoll::open_mpi
