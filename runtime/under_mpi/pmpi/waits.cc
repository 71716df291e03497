// SPDX-License-Identifier: BSD-3-Clause
// MPI_Wait... and MPI_Test...: where the MPI advances nothing but its own, they advance nonblocking calls in ibcoll,
// too.
#include <sched.h>

#include "runtime/under_mpi/core/job.h"
#include "runtime/under_mpi/core/requests.h"
#include "runtime/under_mpi/pmpi/advancer.h"
#include "runtime/under_mpi/pmpi/general_request.h"
#include "runtime/under_mpi/pmpi/next.h"

namespace ibcoll::under_mpi {

namespace {

bool must_advance() noexcept { return advancer_in_use() && requests_in_flight() > 0; }

// `test` looks once and says whether the wait is over; `own` is the MPI's wait, which serves while nothing is in
// flight, and where `test` returns kServe.
constexpr int kServe = -1;
template <typename Test, typename Own>
int wait_for(Test test, Own own) {
  for (int looks = 0; must_advance(); ++looks) {
    const bool moved = progress() > 0;
    int over = 0;
    const int code = test(&over);
    if (code == kServe) break;
    if (code != MPI_SUCCESS || over != 0) return code;
    if (!moved && looks % 16 == 15) sched_yield();
  }
  return own();
}

int with_failure(int code) noexcept {
  const int failure = take_failure();
  return code == MPI_SUCCESS ? failure : code;
}

template <typename Test, typename Own>
int wait(Test test, Own own) {
  return with_failure(wait_for(test, own));
}

template <typename Own>
int test(Own own) {
  if (must_advance()) progress();
  return with_failure(own());
}

}  // namespace

IBCOLL_BOTH_NAMES(Wait)
extern "C" int PMPI_Wait(MPI_Request* request, MPI_Status* status) {
  return wait([&](int* over) { return IBCOLL_NEXT(Test)(request, over, status); },
              [&] { return IBCOLL_NEXT(Wait)(request, status); });
}

IBCOLL_BOTH_NAMES(Waitall)
extern "C" int PMPI_Waitall(int count, MPI_Request requests[], MPI_Status* statuses) {
  // One after the other: MPI_Testall of MPICH 4.0 fails with persistent collectives of its own.
  int complete = 0;
  return wait(
      [&](int*) {
        for (int over = 1; complete < count; complete += over) {
          MPI_Status status;
          IBCOLL_NEXT(Request_get_status)(requests[complete], &over, &status);
          if (over == 0) return MPI_SUCCESS;
        }
        return kServe;
      },
      [&] { return IBCOLL_NEXT(Waitall)(count, requests, statuses); });
}

IBCOLL_BOTH_NAMES(Waitany)
extern "C" int PMPI_Waitany(int count, MPI_Request requests[], int* index, MPI_Status* status) {
  return wait([&](int* over) { return IBCOLL_NEXT(Testany)(count, requests, index, over, status); },
              [&] { return IBCOLL_NEXT(Waitany)(count, requests, index, status); });
}

IBCOLL_BOTH_NAMES(Waitsome)
extern "C" int PMPI_Waitsome(int count, MPI_Request requests[], int* number, int indices[], MPI_Status* statuses) {
  return wait(
      [&](int* over) {
        const int code = IBCOLL_NEXT(Testsome)(count, requests, number, indices, statuses);
        *over = *number != 0;
        return code;
      },
      [&] { return IBCOLL_NEXT(Waitsome)(count, requests, number, indices, statuses); });
}

IBCOLL_BOTH_NAMES(Test)
extern "C" int PMPI_Test(MPI_Request* request, int* over, MPI_Status* status) {
  return test([&] { return IBCOLL_NEXT(Test)(request, over, status); });
}

IBCOLL_BOTH_NAMES(Testall)
extern "C" int PMPI_Testall(int count, MPI_Request requests[], int* over, MPI_Status* statuses) {
  return test([&] { return IBCOLL_NEXT(Testall)(count, requests, over, statuses); });
}

IBCOLL_BOTH_NAMES(Testany)
extern "C" int PMPI_Testany(int count, MPI_Request requests[], int* index, int* over, MPI_Status* status) {
  return test([&] { return IBCOLL_NEXT(Testany)(count, requests, index, over, status); });
}

IBCOLL_BOTH_NAMES(Testsome)
extern "C" int PMPI_Testsome(int count, MPI_Request requests[], int* number, int indices[], MPI_Status* statuses) {
  return test([&] { return IBCOLL_NEXT(Testsome)(count, requests, number, indices, statuses); });
}

IBCOLL_BOTH_NAMES(Request_get_status)
extern "C" int PMPI_Request_get_status(MPI_Request request, int* over, MPI_Status* status) {
  return test([&] { return IBCOLL_NEXT(Request_get_status)(request, over, status); });
}

}  // namespace ibcoll::under_mpi
