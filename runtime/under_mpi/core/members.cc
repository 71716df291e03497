// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/under_mpi/core/members.h"

#include <mpi.h>

#include <algorithm>
#include <atomic>
#include <numeric>

namespace ibcoll::under_mpi {

namespace {

// An id: a count, then the rank in MPI_COMM_WORLD that proposed it.
constexpr int kRankBits = 24;
std::atomic<int64_t> count{0};

}  // namespace

bool ranks_in_world(const Communicator& comm, std::vector<int>* ranks) {
  MPI_Group members = MPI_GROUP_NULL, world = MPI_GROUP_NULL;
  PMPI_Comm_group(comm.handle(), &members);
  PMPI_Comm_group(MPI_COMM_WORLD, &world);
  std::vector<int> own(static_cast<size_t>(comm.size()));
  std::iota(own.begin(), own.end(), 0);
  ranks->resize(own.size());
  PMPI_Group_translate_ranks(members, comm.size(), own.data(), world, ranks->data());
  PMPI_Group_free(&members);
  PMPI_Group_free(&world);
  return std::find(ranks->begin(), ranks->end(), MPI_UNDEFINED) == ranks->end();
}

int64_t propose_team_id() noexcept {
  int rank = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return (++count << kRankBits) | rank;
}

void saw_team_id(int64_t id) noexcept {
  int64_t before = count.load();
  while (before < (id >> kRankBits) && !count.compare_exchange_weak(before, id >> kRankBits)) {
  }
}

}  // namespace ibcoll::under_mpi
