// SPDX-License-Identifier: BSD-3-Clause
// Progress of nonblocking calls under an MPI that advances nothing but its own while it waits: this library's
// MPI_Wait... and MPI_Test... do it, and a thread while the program is in other calls or computes.
#pragma once

namespace ibcoll::under_mpi {

// This MPI needs it.
void use_advancer() noexcept;
bool advancer_in_use() noexcept;
// A nonblocking call was started. The first one starts the thread; without nonblocking calls there is none.
void wake_advancer() noexcept;
// Waits for the thread to end.
void stop_advancer() noexcept;

}  // namespace ibcoll::under_mpi
