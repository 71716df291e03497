// SPDX-License-Identifier: BSD-3-Clause
#include "tools/oracle/blocking_call.h"

namespace ibcoll::oracle {

ibcoll_status_t blocking_call(ibcoll_team_t team, const ibcoll_collective_args_t& a) {
  switch (a.collective) {
    case IBCOLL_BARRIER:
      return ibcoll_barrier(team);
    case IBCOLL_BCAST:
      return ibcoll_bcast(team, a.recv, a.bytes, a.root);
    case IBCOLL_ALLGATHER:
      return ibcoll_allgather(team, a.send, a.recv, a.bytes);
    case IBCOLL_ALLGATHERV:
      return ibcoll_allgatherv(team, a.send, a.recv, a.recv_counts, a.recv_displacements);
    case IBCOLL_ALLTOALL:
      return ibcoll_alltoall(team, a.send, a.recv, a.bytes);
    case IBCOLL_ALLTOALLV:
      return ibcoll_alltoallv(team, a.send, a.send_counts, a.send_displacements, a.recv, a.recv_counts,
                              a.recv_displacements);
    case IBCOLL_ALLREDUCE:
      return ibcoll_allreduce(team, a.send, a.recv, a.count, a.type, a.op);
    case IBCOLL_GATHER:
      return ibcoll_gather(team, a.send, a.recv, a.bytes, a.root);
    case IBCOLL_GATHERV:
      return ibcoll_gatherv(team, a.send, a.bytes, a.recv, a.recv_counts, a.recv_displacements, a.root);
    case IBCOLL_SCATTER:
      return ibcoll_scatter(team, a.send, a.recv, a.bytes, a.root);
    case IBCOLL_SCATTERV:
      return ibcoll_scatterv(team, a.send, a.send_counts, a.send_displacements, a.recv, a.bytes, a.root);
    case IBCOLL_REDUCE:
      return ibcoll_reduce(team, a.send, a.recv, a.count, a.type, a.op, a.root);
    case IBCOLL_REDUCE_SCATTER:
      return ibcoll_reduce_scatter(team, a.send, a.recv, a.recv_counts, a.type, a.op);
    case IBCOLL_REDUCE_SCATTER_BLOCK:
      return ibcoll_reduce_scatter_block(team, a.send, a.recv, a.count, a.type, a.op);
    case IBCOLL_SCAN:
      return ibcoll_scan(team, a.send, a.recv, a.count, a.type, a.op);
    case IBCOLL_EXSCAN:
      return ibcoll_exscan(team, a.send, a.recv, a.count, a.type, a.op);
  }
  return IBCOLL_ERR_INTERNAL;
}

}  // namespace ibcoll::oracle
