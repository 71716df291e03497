// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/under_mpi/openmpi/collectives.h"

#include "runtime/under_mpi/openmpi/forms.h"

namespace ibcoll::open_mpi {
namespace {

using under_mpi::Call;
using under_mpi::Collective;
using Type = ompi_datatype_t*;
using Types = ompi_datatype_t* const*;
using Op = ompi_op_t*;

Call barrier() { return {.collective = Collective::kBarrier}; }

Call bcast(void* buffer, int count, Type type, int root) {
  return {.collective = Collective::kBcast, .recv = {buffer, count, type}, .root = root};
}

template <Collective collective>
Call blocks(const void* send, int send_count, Type send_type, void* recv, int recv_count, Type recv_type) {
  return {.collective = collective, .send = {send, send_count, send_type}, .recv = {recv, recv_count, recv_type}};
}

template <Collective collective>
Call rooted_blocks(const void* send, int send_count, Type send_type, void* recv, int recv_count, Type recv_type,
                   int root) {
  return {.collective = collective,
          .send = {send, send_count, send_type},
          .recv = {recv, recv_count, recv_type},
          .root = root};
}

Call allgatherv(const void* send, int send_count, Type send_type, void* recv, const int* counts,
                const int* displacements, Type recv_type) {
  return {.collective = Collective::kAllgatherv,
          .send = {send, send_count, send_type},
          .recv = {.buffer = recv, .type = recv_type, .counts = counts, .displacements = displacements}};
}

Call alltoallv(const void* send, const int* send_counts, const int* send_displacements, Type send_type, void* recv,
               const int* recv_counts, const int* recv_displacements, Type recv_type) {
  return {.collective = Collective::kAlltoallv,
          .send = {.buffer = send, .type = send_type, .counts = send_counts, .displacements = send_displacements},
          .recv = {.buffer = recv, .type = recv_type, .counts = recv_counts, .displacements = recv_displacements}};
}

Call alltoallw(const void* send, const int* send_counts, const int* send_displacements, Types send_types, void* recv,
               const int* recv_counts, const int* recv_displacements, Types recv_types) {
  return {.collective = Collective::kAlltoallw,
          .send = {.buffer = send, .counts = send_counts, .displacements = send_displacements, .types = send_types},
          .recv = {.buffer = recv, .counts = recv_counts, .displacements = recv_displacements, .types = recv_types}};
}

Call gatherv(const void* send, int send_count, Type send_type, void* recv, const int* counts, const int* displacements,
             Type recv_type, int root) {
  return {.collective = Collective::kGatherv,
          .send = {send, send_count, send_type},
          .recv = {.buffer = recv, .type = recv_type, .counts = counts, .displacements = displacements},
          .root = root};
}

Call scatterv(const void* send, const int* counts, const int* displacements, Type send_type, void* recv, int recv_count,
              Type recv_type, int root) {
  return {.collective = Collective::kScatterv,
          .send = {.buffer = send, .type = send_type, .counts = counts, .displacements = displacements},
          .recv = {recv, recv_count, recv_type},
          .root = root};
}

template <Collective collective>
Call reduction(const void* send, void* recv, int count, Type type, Op op) {
  return {.collective = collective, .send = {send}, .recv = {recv, count, type}, .op = op};
}

Call reduce(const void* send, void* recv, int count, Type type, Op op, int root) {
  return {.collective = Collective::kReduce, .send = {send}, .recv = {recv, count, type}, .op = op, .root = root};
}

Call reduce_scatter(const void* send, void* recv, const int* counts, Type type, Op op) {
  return {.collective = Collective::kReduceScatter,
          .send = {send},
          .recv = {.buffer = recv, .type = type, .counts = counts},
          .op = op};
}

// The arguments are the same in all forms, up to the communicator.
#define IBCOLL_FORMS(describe, name) Forms<describe, IBCOLL_SLOT(name), IBCOLL_SLOT(i##name), IBCOLL_SLOT(name##_init)>

template <class... Collectives>
struct All {
  static void install(Module& module, const Table& table) { (Collectives::install(module, table), ...); }
  static void remove(Module& module) { (Collectives::remove(module), ...); }
};

using EveryCollective =
    All<IBCOLL_FORMS(barrier, barrier), IBCOLL_FORMS(bcast, bcast),
        IBCOLL_FORMS(blocks<Collective::kAllgather>, allgather), IBCOLL_FORMS(allgatherv, allgatherv),
        IBCOLL_FORMS(blocks<Collective::kAlltoall>, alltoall), IBCOLL_FORMS(alltoallv, alltoallv),
        IBCOLL_FORMS(alltoallw, alltoallw), IBCOLL_FORMS(rooted_blocks<Collective::kGather>, gather),
        IBCOLL_FORMS(gatherv, gatherv), IBCOLL_FORMS(rooted_blocks<Collective::kScatter>, scatter),
        IBCOLL_FORMS(scatterv, scatterv), IBCOLL_FORMS(reduction<Collective::kAllreduce>, allreduce),
        IBCOLL_FORMS(reduce, reduce), IBCOLL_FORMS(reduce_scatter, reduce_scatter),
        IBCOLL_FORMS(reduction<Collective::kReduceScatterBlock>, reduce_scatter_block),
        IBCOLL_FORMS(reduction<Collective::kScan>, scan), IBCOLL_FORMS(reduction<Collective::kExscan>, exscan)>;

}  // namespace

void install_collectives(Module& module, const Table& table) { EveryCollective::install(module, table); }
void remove_collectives(Module& module) { EveryCollective::remove(module); }

}  // namespace ibcoll::open_mpi
