// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/under_mpi/pmpi/presence.h"

#include <sched.h>

#include <cstdio>
#include <cstdlib>

#include "runtime/under_mpi/core/route.h"
#include "runtime/under_mpi/pmpi/next.h"

namespace ibcoll::under_mpi {

namespace {

constexpr double kPatience = 10;  // seconds without a word
constexpr double kLimit = 600;    // of IBCOLL_TIMEOUT, where it is not set
constexpr int kTag = 0x1bc0;

double limit() noexcept {
  const char* text = std::getenv("IBCOLL_TIMEOUT");
  const double seconds = text != nullptr ? std::strtod(text, nullptr) : 0;
  return seconds > 0 ? seconds : kLimit;
}

void say(int rank, int missing, double seconds, const char* what) noexcept {
  std::fprintf(
      stderr,
      "ibcoll under MPI: rank %d: rank %d has not come to the start of %s in %.0f s%s; probably the library is "
      "missing on its host, or preloaded for some ranks only: preload it for all ranks, or for none\n",
      rank, missing, route().name, seconds, what);
}

class PresenceWait {
 public:
  PresenceWait(MPI_Comm comm, int own)
      : comm_(comm), own_(own), begin_(PMPI_Wtime()), most_(own == 0 ? limit() : limit() + 1), said_(own != 0) {}

  // For the message of `rank`. The first that gives up ends the job; mostly rank 0, so that one line says it.
  void receive(int rank) noexcept {
    MPI_Request request = MPI_REQUEST_NULL;
    PMPI_Irecv(nullptr, 0, MPI_BYTE, rank, kTag, comm_, &request);
    for (int over = 0;; sched_yield()) {
      if (IBCOLL_NEXT(Test)(&request, &over, MPI_STATUS_IGNORE) != MPI_SUCCESS || over != 0) return;
      const double seconds = PMPI_Wtime() - begin_;
      if (seconds > most_) {
        say(own_, rank, seconds, ", which ends the job (IBCOLL_TIMEOUT)");
        PMPI_Abort(comm_, 1);
      }
      if (!said_ && seconds > kPatience) {
        say(own_, rank, seconds, " and is waited for");
        said_ = true;
      }
    }
  }
  void send(int rank) noexcept { PMPI_Send(nullptr, 0, MPI_BYTE, rank, kTag, comm_); }

 private:
  MPI_Comm comm_;
  int own_;
  double begin_, most_;
  bool said_;
};

}  // namespace

// By messages: a collective could meet one of a rank that lacks the library.
void await_all_ranks(const Communicator& world) noexcept {
  int rank = 0, size = 0;
  PMPI_Comm_rank(world.handle(), &rank);
  PMPI_Comm_size(world.handle(), &size);
  PresenceWait waiting(world.handle(), rank);
  if (rank == 0) {
    for (int other = 1; other < size; ++other) waiting.receive(other);
    for (int other = 1; other < size; ++other) waiting.send(other);
  } else {
    waiting.send(0);
    waiting.receive(0);
  }
}

}  // namespace ibcoll::under_mpi
