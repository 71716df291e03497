// SPDX-License-Identifier: BSD-3-Clause
// Nonblocking and persistent calls that are in flight.
#pragma once

namespace ibcoll::under_mpi {

// The program has persistent requests that it has not freed.
bool persistent_requests_exist() noexcept;
// How many calls are in flight.
int requests_in_flight() noexcept;
// Completes those whose collective is; returns their number. Advances nothing: progress() does, once for all of them.
int complete_requests() noexcept;

}  // namespace ibcoll::under_mpi
