// SPDX-License-Identifier: BSD-3-Clause
// The arguments of MPI's functions as a Call of core. Names and order of the arguments are MPI's.
#pragma once

#include <mpi.h>

#include "runtime/under_mpi/core/call.h"

namespace ibcoll::under_mpi::calls {

inline Call barrier() { return {Collective::kBarrier}; }

inline Call bcast(void* buffer, int64_t count, MPI_Datatype type, int root) {
  return {.collective = Collective::kBcast, .recv = {buffer, count, type}, .root = root};
}

inline Call allgather(const void* send, int64_t send_count, MPI_Datatype send_type, void* recv, int64_t recv_count,
                      MPI_Datatype recv_type) {
  return {Collective::kAllgather, {send, send_count, send_type}, {recv, recv_count, recv_type}};
}

inline Call allgatherv(const void* send, int64_t send_count, MPI_Datatype send_type, void* recv, Numbers counts,
                       Numbers displacements, MPI_Datatype recv_type) {
  return {Collective::kAllgatherv, {send, send_count, send_type}, {recv, 0, recv_type, counts, displacements}};
}

inline Call alltoall(const void* send, int64_t send_count, MPI_Datatype send_type, void* recv, int64_t recv_count,
                     MPI_Datatype recv_type) {
  return {Collective::kAlltoall, {send, send_count, send_type}, {recv, recv_count, recv_type}};
}

inline Call alltoallv(const void* send, Numbers send_counts, Numbers send_displacements, MPI_Datatype send_type,
                      void* recv, Numbers recv_counts, Numbers recv_displacements, MPI_Datatype recv_type) {
  return {Collective::kAlltoallv,
          {send, 0, send_type, send_counts, send_displacements},
          {recv, 0, recv_type, recv_counts, recv_displacements}};
}

inline Call alltoallw(const void* send, Numbers send_counts, Numbers send_displacements, const MPI_Datatype* send_types,
                      void* recv, Numbers recv_counts, Numbers recv_displacements, const MPI_Datatype* recv_types) {
  return {Collective::kAlltoallw,
          {send, 0, MPI_DATATYPE_NULL, send_counts, send_displacements, send_types},
          {recv, 0, MPI_DATATYPE_NULL, recv_counts, recv_displacements, recv_types}};
}

inline Call gather(const void* send, int64_t send_count, MPI_Datatype send_type, void* recv, int64_t recv_count,
                   MPI_Datatype recv_type, int root) {
  return {.collective = Collective::kGather,
          .send = {send, send_count, send_type},
          .recv = {recv, recv_count, recv_type},
          .root = root};
}

inline Call gatherv(const void* send, int64_t send_count, MPI_Datatype send_type, void* recv, Numbers counts,
                    Numbers displacements, MPI_Datatype recv_type, int root) {
  return {.collective = Collective::kGatherv,
          .send = {send, send_count, send_type},
          .recv = {recv, 0, recv_type, counts, displacements},
          .root = root};
}

inline Call scatter(const void* send, int64_t send_count, MPI_Datatype send_type, void* recv, int64_t recv_count,
                    MPI_Datatype recv_type, int root) {
  return {.collective = Collective::kScatter,
          .send = {send, send_count, send_type},
          .recv = {recv, recv_count, recv_type},
          .root = root};
}

inline Call scatterv(const void* send, Numbers counts, Numbers displacements, MPI_Datatype send_type, void* recv,
                     int64_t recv_count, MPI_Datatype recv_type, int root) {
  return {.collective = Collective::kScatterv,
          .send = {send, 0, send_type, counts, displacements},
          .recv = {recv, recv_count, recv_type},
          .root = root};
}

inline Call reduction(Collective collective, const void* send, void* recv, int64_t count, MPI_Datatype type, MPI_Op op,
                      int root = 0) {
  return {collective, {send}, {recv, count, type}, op, root};
}

inline Call allreduce(const void* send, void* recv, int64_t count, MPI_Datatype type, MPI_Op op) {
  return reduction(Collective::kAllreduce, send, recv, count, type, op);
}

inline Call reduce(const void* send, void* recv, int64_t count, MPI_Datatype type, MPI_Op op, int root) {
  return reduction(Collective::kReduce, send, recv, count, type, op, root);
}

inline Call reduce_scatter_block(const void* send, void* recv, int64_t count, MPI_Datatype type, MPI_Op op) {
  return reduction(Collective::kReduceScatterBlock, send, recv, count, type, op);
}

inline Call scan(const void* send, void* recv, int64_t count, MPI_Datatype type, MPI_Op op) {
  return reduction(Collective::kScan, send, recv, count, type, op);
}

inline Call exscan(const void* send, void* recv, int64_t count, MPI_Datatype type, MPI_Op op) {
  return reduction(Collective::kExscan, send, recv, count, type, op);
}

inline Call reduce_scatter(const void* send, void* recv, Numbers counts, MPI_Datatype type, MPI_Op op) {
  return {.collective = Collective::kReduceScatter,
          .send = {.buffer = send},
          .recv = {.buffer = recv, .type = type, .counts = counts},
          .op = op};
}

}  // namespace ibcoll::under_mpi::calls
