// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace ibcoll {

// Whether a library of this process is an MPI that has been started, ended or not.
bool mpi_is_running();

}  // namespace ibcoll
