// SPDX-License-Identifier: BSD-3-Clause
// Arguments that tests of the C interface start from.
#pragma once

#include "runtime/collectives/framework/arguments.h"

namespace ibcoll {

// Blocks of `bytes` bytes from `send` to `recv`, of ranks whose counts are `counts`; or `count` elements, summed.
inline ibcoll_collective_args_t arguments_of(ibcoll_collective_t collective, const void* send, void* recv,
                                             uint64_t bytes, const uint64_t* counts, const uint64_t* displacements,
                                             uint64_t count, ibcoll_type_t type) {
  ibcoll_collective_args_t args = arguments_of(collective, send, recv, bytes);
  args.send_counts = args.recv_counts = counts;
  args.send_displacements = args.recv_displacements = displacements;
  args.count = count;
  args.type = type;
  args.op = IBCOLL_SUM;
  return args;
}

}  // namespace ibcoll
