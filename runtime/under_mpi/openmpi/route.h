// SPDX-License-Identifier: BSD-3-Clause
// What core asks of Open MPI.
#pragma once

namespace ibcoll::open_mpi {

void install_route();

}  // namespace ibcoll::open_mpi
