// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/under_mpi/core/failure.h"

#include <mpi.h>

#include <cstdio>

namespace ibcoll::under_mpi {

int report_failure(int rank, Collective collective, ibcoll_status_t status) noexcept {
  const char* why = ibcoll_last_error();
  const auto name = name_of(collective);
  std::fprintf(stderr, "ibcoll under MPI: rank %d: %.*s: %s\n", rank, static_cast<int>(name.size()), name.data(),
               *why != '\0' ? why : ibcoll_status_string(status));
  return status == IBCOLL_ERR_NO_MEMORY ? MPI_ERR_NO_MEM : MPI_ERR_OTHER;
}

}  // namespace ibcoll::under_mpi
