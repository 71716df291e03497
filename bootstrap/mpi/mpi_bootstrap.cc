// SPDX-License-Identifier: BSD-3-Clause
// Built once for each MPI implementation (their ABIs differ). Kept apart from libibcoll.so, which knows no MPI.
#include "bootstrap/mpi/ibcoll_mpi_bootstrap.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

namespace {

// IBCOLL_TIMEOUT of the environment; its default if it is not set, or is malformed, which the context reports.
double timeout_seconds() noexcept {
  constexpr double kDefault = 600, kLongest = 1e8;
  const char* text = std::getenv("IBCOLL_TIMEOUT");
  if (text == nullptr) return kDefault;
  char* end = nullptr;
  const double seconds = std::strtod(text, &end);
  return end != text && *end == '\0' && seconds > 0 ? std::min(seconds, kLongest) : kDefault;
}

thread_local char last_error[MPI_MAX_ERROR_STRING + 256] = "";

struct Communicator {
  MPI_Comm comm = MPI_COMM_NULL;
  int rank = 0;
  int size = 0;
  // An exchange gave up; MPI cannot cancel it, so the communicator can be neither used nor freed any more.
  bool stuck = false;
};

ibcoll_status_t refuse(ibcoll_status_t status, const char* text) noexcept {
  std::snprintf(last_error, sizeof last_error, "%s", text);
  return status;
}

// Keeps MPI's own words about `code`; returns it, so that 0 stays success.
int keep(const char* call, int rank, int code) noexcept {
  if (code == MPI_SUCCESS) return 0;
  char reason[MPI_MAX_ERROR_STRING + 1] = "";
  int length = 0;
  MPI_Error_string(code, reason, &length);
  std::snprintf(last_error, sizeof last_error, "rank %d: %s: %s", rank, call, reason);
  return code;
}

bool mpi_is_running() noexcept {
  int initialized = 0;
  int finalized = 0;
  return MPI_Initialized(&initialized) == MPI_SUCCESS && initialized != 0 && MPI_Finalized(&finalized) == MPI_SUCCESS &&
         finalized == 0;
}

// Blocks of one exchange: MPI's for good if the exchange gives up, so not the caller's memory.
struct Blocks {
  Blocks(size_t bytes, size_t ranks)
      : mine(new (std::nothrow) char[bytes]), all(new (std::nothrow) char[bytes * ranks]) {}
  std::unique_ptr<char[]> mine;
  std::unique_ptr<char[]> all;
};

// MPI may still complete the exchange: it owns the blocks from now on, and no other exchange may follow.
void give_up_on(Communicator& peers, Blocks& blocks) noexcept {
  peers.stuck = true;
  static_cast<void>(blocks.mine.release());
  static_cast<void>(blocks.all.release());
}

int wait_for_all(Communicator& peers, MPI_Request& request, Blocks& blocks) noexcept {
  const double seconds = timeout_seconds();
  const auto give_up =
      std::chrono::steady_clock::now() + std::chrono::milliseconds(static_cast<int64_t>(seconds * 1e3));
  for (int done = 0;;) {
    if (const int code = keep("MPI_Test", peers.rank, MPI_Test(&request, &done, MPI_STATUS_IGNORE)); code != 0) {
      give_up_on(peers, blocks);
      return code;
    }
    if (done != 0) return 0;
    if (std::chrono::steady_clock::now() > give_up) break;
    sched_yield();
  }
  give_up_on(peers, blocks);
  std::snprintf(last_error, sizeof last_error,
                "rank %d: MPI_Iallgather: not all %d ranks came within %g s (IBCOLL_TIMEOUT); does every rank of the "
                "communicator create and destroy its context?",
                peers.rank, peers.size, seconds);
  return MPI_ERR_OTHER;
}

int allgather(void* user, const void* send, void* recv, size_t bytes) {
  Communicator& peers = *static_cast<Communicator*>(user);
  if (peers.stuck || bytes > INT_MAX || !mpi_is_running()) {
    refuse(IBCOLL_ERR_BOOTSTRAP, peers.stuck       ? "an earlier exchange failed or timed out"
                                 : bytes > INT_MAX ? "an exchange of more than 2 GiB per rank"
                                                   : "MPI is not running: destroy the context before MPI_Finalize");
    return MPI_ERR_OTHER;
  }
  Blocks blocks(bytes, static_cast<size_t>(peers.size));
  if (!blocks.mine || !blocks.all) {
    refuse(IBCOLL_ERR_NO_MEMORY, "no memory for the exchange");
    return MPI_ERR_NO_MEM;
  }
  std::memcpy(blocks.mine.get(), send, bytes);
  const int count = static_cast<int>(bytes);
  MPI_Request request = MPI_REQUEST_NULL;
  int code =
      MPI_Iallgather(blocks.mine.get(), count, MPI_BYTE, blocks.all.get(), count, MPI_BYTE, peers.comm, &request);
  if (keep("MPI_Iallgather", peers.rank, code) != 0) return code;
  code = wait_for_all(peers, request, blocks);
  if (code == 0) std::memcpy(recv, blocks.all.get(), bytes * static_cast<size_t>(peers.size));
  return code;
}

}  // namespace

ibcoll_status_t ibcoll_mpi_bootstrap(MPI_Comm comm, ibcoll_bootstrap_t* bootstrap) {
  if (bootstrap == nullptr) return refuse(IBCOLL_ERR_INVALID_ARGUMENT, "ibcoll_mpi_bootstrap: bootstrap is NULL");
  *bootstrap = {};
  if (!mpi_is_running()) {
    return refuse(IBCOLL_ERR_INVALID_ARGUMENT, "ibcoll_mpi_bootstrap: call it between MPI_Init and MPI_Finalize");
  }
  int inter = 0;
  if (comm == MPI_COMM_NULL || MPI_Comm_test_inter(comm, &inter) != MPI_SUCCESS || inter != 0) {
    return refuse(IBCOLL_ERR_INVALID_ARGUMENT, "ibcoll_mpi_bootstrap: comm must be an intracommunicator");
  }
  std::unique_ptr<Communicator> peers(new (std::nothrow) Communicator);
  if (!peers) return refuse(IBCOLL_ERR_NO_MEMORY, "ibcoll_mpi_bootstrap: no memory");
  MPI_Comm_rank(comm, &peers->rank);
  MPI_Comm_size(comm, &peers->size);
  if (keep("MPI_Comm_dup", peers->rank, MPI_Comm_dup(comm, &peers->comm)) != 0) return IBCOLL_ERR_BOOTSTRAP;
  MPI_Comm_set_errhandler(peers->comm, MPI_ERRORS_RETURN);
  *bootstrap = {sizeof *bootstrap, peers->rank, peers->size, allgather, peers.get(), nullptr, 0};
  static_cast<void>(peers.release());  // the bootstrap owns it now
  return IBCOLL_OK;
}

ibcoll_status_t ibcoll_mpi_bootstrap_free(ibcoll_bootstrap_t* bootstrap) {
  if (bootstrap == nullptr || bootstrap->user == nullptr) return IBCOLL_OK;
  const std::unique_ptr<Communicator> peers(static_cast<Communicator*>(bootstrap->user));
  *bootstrap = {};
  if (peers->stuck) return refuse(IBCOLL_ERR_BOOTSTRAP, "an exchange that timed out still holds the communicator");
  if (!mpi_is_running()) return refuse(IBCOLL_ERR_BOOTSTRAP, "MPI has ended; free the bootstrap before MPI_Finalize");
  const int code = keep("MPI_Comm_free", peers->rank, MPI_Comm_free(&peers->comm));
  return code == 0 ? IBCOLL_OK : IBCOLL_ERR_BOOTSTRAP;
}

const char* ibcoll_mpi_last_error(void) { return last_error; }
