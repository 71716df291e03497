// SPDX-License-Identifier: BSD-3-Clause
// Calls by which a tool exchanges data among its ranks for itself: what the user forces is for the program that is
// measured or asked about.
#pragma once

#include "ibcoll.h"

namespace ibcoll {

// Arguments of a collective that any algorithm may run.
inline ibcoll_collective_args_t own_call(ibcoll_collective_t collective, const void* send, void* recv) {
  ibcoll_collective_args_t args{};
  args.struct_size = sizeof args;
  args.collective = collective;
  args.send = send;
  args.recv = recv;
  args.algorithm = "auto";
  return args;
}

// Runs a call as ibcoll's blocking shorthands do; they take neither scheme nor algorithm.
inline ibcoll_status_t run_blocking(ibcoll_team_t team, const ibcoll_collective_args_t& args) {
  ibcoll_request_t request = nullptr;
  ibcoll_status_t status = ibcoll_collective_init(team, &args, &request);
  if (status == IBCOLL_OK) status = ibcoll_start(request);
  if (status == IBCOLL_OK) status = ibcoll_wait(request);
  const ibcoll_status_t freed = ibcoll_request_free(request);
  return status == IBCOLL_OK ? freed : status;
}

}  // namespace ibcoll
