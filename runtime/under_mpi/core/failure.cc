// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/under_mpi/core/failure.h"

#include <mpi.h>

#include <cinttypes>
#include <cstdio>

namespace ibcoll::under_mpi {

int report_failure(int rank, Collective collective, ibcoll_status_t status) noexcept {
  const char* why = ibcoll_last_error();
  const auto name = name_of(collective);
  std::fprintf(stderr, "ibcoll under MPI: rank %d: %.*s: %s\n", rank, static_cast<int>(name.size()), name.data(),
               *why != '\0' ? why : ibcoll_status_string(status));
  switch (status) {
    case IBCOLL_ERR_NO_MEMORY:
      return MPI_ERR_NO_MEM;
    case IBCOLL_ERR_MISMATCH:
      return MPI_ERR_TRUNCATE;
    default:
      return MPI_ERR_OTHER;
  }
}

int report_after_mismatch(int rank, Collective collective) noexcept {
  const auto name = name_of(collective);
  std::fprintf(stderr,
               "ibcoll under MPI: rank %d: %.*s: it cannot run, as an earlier call on the communicator did not match; "
               "correct that one\n",
               rank, static_cast<int>(name.size()), name.data());
  return MPI_ERR_TRUNCATE;
}

int report_truncated(int rank, Collective collective, uint64_t sent, uint64_t offered) noexcept {
  const auto name = name_of(collective);
  std::fprintf(stderr,
               "ibcoll under MPI: rank %d: %.*s: this rank sends itself %" PRIu64 " bytes, but offers %" PRIu64
               " for them: the end is cut off; make both counts the same\n",
               rank, static_cast<int>(name.size()), name.data(), sent, offered);
  return MPI_ERR_TRUNCATE;
}

}  // namespace ibcoll::under_mpi
