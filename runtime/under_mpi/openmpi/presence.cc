// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/under_mpi/openmpi/presence.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "ibcoll.h"

namespace ibcoll::open_mpi {
namespace {

char key[] = "coll_ibcoll";

opal_process_name_t name_of(ompi_communicator_t* comm, int rank) {
  return ompi_group_get_proc_name(comm->c_local_group, rank);
}

// Where there is no answer, the job's server is asked, which may take it two seconds.
bool has_component(ompi_communicator_t* world, int rank) {
  opal_process_name_t name = name_of(world, rank);
  void* bytes = nullptr;
  size_t length = 0;
  int status = OPAL_SUCCESS;
  OPAL_MODEX_RECV_STRING(status, key, &name, reinterpret_cast<uint8_t**>(&bytes), &length);
  const std::string version = ibcoll_version_string();
  const bool same = status == OPAL_SUCCESS && bytes != nullptr && length == version.size() &&
                    std::memcmp(bytes, version.data(), length) == 0;
  std::free(bytes);
  return same;
}

// By rank 0; where it has no component, by the ranks after one that has none: mostly one, the first of its host.
void report(ompi_communicator_t* world, int lacking) {
  const int rank = ompi_comm_rank(world);
  if (lacking == 0 ? has_component(world, rank - 1) : rank != 0) return;
  std::fprintf(
      stderr,
      "ibcoll: rank %d of MPI_COMM_WORLD has no coll component ibcoll %s (not installed there, switched off, or "
      "of another version): all collectives are Open MPI's own\n",
      lacking, ibcoll_version_string());
}

}  // namespace

int announce() {
  std::string version = ibcoll_version_string();
  int status = OPAL_SUCCESS;
  OPAL_MODEX_SEND_STRING(status, kEveryProcess, key, version.data(), version.size());
  return status;
}

bool all_have_component(ompi_communicator_t* world) {
  for (int rank = 0; rank < ompi_comm_size(world); ++rank)
    if (!has_component(world, rank)) {
      report(world, rank);
      return false;
    }
  return true;
}

bool all_of_this_job(ompi_communicator_t* comm) {
  const auto own = name_of(comm, ompi_comm_rank(comm)).jobid;
  for (int rank = 0; rank < ompi_comm_size(comm); ++rank)
    if (name_of(comm, rank).jobid != own) return false;
  return true;
}

}  // namespace ibcoll::open_mpi
