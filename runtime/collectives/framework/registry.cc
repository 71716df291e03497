// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/collectives/framework/registry.h"

#include <vector>

// The files, a line each: folder and name, which are their namespaces.
#define IBCOLL_ALGORITHM_FILES(FILE)  \
  FILE(barrier, dissemination)        \
  FILE(barrier, shm)                  \
  FILE(bcast, binomial)               \
  FILE(bcast, shm)                    \
  FILE(bcast, single_copy)            \
  FILE(bcast, circulant)              \
  FILE(allgather, ring)               \
  FILE(allgather, recursive_doubling) \
  FILE(allgather, bruck)              \
  FILE(allgather, shm)                \
  FILE(allgather, single_copy)        \
  FILE(allgather, pap_shm_direct)     \
  FILE(allgather, ring_pipelined)     \
  FILE(allgather, circulant)          \
  FILE(alltoall, direct)              \
  FILE(alltoall, pairwise)            \
  FILE(alltoall, pap_direct)          \
  FILE(alltoall, shm)                 \
  FILE(alltoall, single_copy)         \
  FILE(alltoall, pap_shm_direct)      \
  FILE(alltoallv, shm)                \
  FILE(allreduce, recursive_doubling) \
  FILE(allreduce, shm)                \
  FILE(allreduce, single_copy)        \
  FILE(gather, linear)                \
  FILE(scatter, linear)               \
  FILE(reduce, linear)                \
  FILE(reduce_scatter, linear)        \
  FILE(scan, linear)

namespace ibcoll {

#define IBCOLL_DECLARE(folder, name) \
  namespace folder::name {           \
  std::span<const Algorithm> rows(); \
  }
IBCOLL_ALGORITHM_FILES(IBCOLL_DECLARE)
#undef IBCOLL_DECLARE

namespace {

std::vector<const Algorithm*> all_rows() {
  std::vector<const Algorithm*> all;
#define IBCOLL_APPEND(folder, name) \
  for (const Algorithm& row : folder::name::rows()) all.push_back(&row);
  IBCOLL_ALGORITHM_FILES(IBCOLL_APPEND)
#undef IBCOLL_APPEND
  return all;
}

}  // namespace

std::span<const Algorithm* const> algorithms() {
  static const std::vector<const Algorithm*> all = all_rows();
  return all;
}

const Algorithm* find_algorithm(ibcoll_collective_t collective, std::string_view name) {
  for (const Algorithm* const algorithm : algorithms())
    if (algorithm->collective == collective && algorithm->name == name) return algorithm;
  return nullptr;
}

}  // namespace ibcoll
