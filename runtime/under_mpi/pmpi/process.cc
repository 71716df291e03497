// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/under_mpi/pmpi/process.h"

#include <atomic>
#include <climits>
#include <mutex>

#include "runtime/under_mpi/core/job.h"
#include "runtime/under_mpi/core/route.h"
#include "runtime/under_mpi/pmpi/advancer.h"
#include "runtime/under_mpi/pmpi/lifetimes.h"
#include "runtime/under_mpi/pmpi/next.h"
#include "runtime/under_mpi/pmpi/persistent_request.h"
#include "runtime/under_mpi/pmpi/presence.h"

namespace ibcoll::under_mpi {

namespace {

struct Held : Communicator {
  using Communicator::Communicator;
  std::atomic<int> holders{1};  // the first: the communicator of the MPI
  std::atomic<bool> freed{false};
};

enum State : int { kNotSeen, kRunning, kEnded };
std::atomic<int> state{kNotSeen};
std::mutex beginning;
int communicator_key = MPI_KEYVAL_INVALID;
// A request that is never complete: to look at it advances the MPI, and costs nothing else.
MPI_Request endless = MPI_REQUEST_NULL;

// The communicator that this thread used last, while no communicator has ended since.
std::atomic<uint64_t> ended_communicators{0};
struct Last {
  MPI_Comm handle = MPI_COMM_NULL;
  Communicator* comm = nullptr;
  uint64_t ended = 0;
};
thread_local Last last;

int allgather(const Communicator& comm, const void* send, void* recv, size_t bytes) {
  if (bytes > INT_MAX) return MPI_ERR_COUNT;
  const int count = static_cast<int>(bytes);
  return IBCOLL_NEXT(Allgather)(send, count, MPI_BYTE, recv, count, MPI_BYTE, comm.handle());
}

int allreduce_min(const Communicator& comm, int64_t* values, int count) {
  return IBCOLL_NEXT(Allreduce)(MPI_IN_PLACE, values, count, MPI_INT64_T, MPI_MIN, comm.handle());
}

int progress_mpi() {
  int complete = 0;
  IBCOLL_NEXT(Request_get_status)(endless, &complete, MPI_STATUS_IGNORE);
  return 0;
}

int raise(const Communicator& comm, int code) {
  PMPI_Comm_call_errhandler(handle_of(comm), code);
  return code;
}

// Open MPI's waits advance what registers here: this library's nonblocking calls, then.
bool register_progress() {
  using Register = int(int (*)());
  auto* const registers = reinterpret_cast<Register*>(dlsym(RTLD_DEFAULT, "opal_progress_register"));
  return registers != nullptr && registers([] { return progress(); }) == 0;
}

int forget_communicator(MPI_Comm, int, void* comm, void*) {
  ended_communicators.fetch_add(1);
  auto* const held = static_cast<Held*>(comm);
  held->freed = true;
  drop(*held);
  return MPI_SUCCESS;
}

void install_route() {
  Route route;
#ifdef OPEN_MPI
  route.name = "libibcoll_pmpi_openmpi.so";
#else
  route.name = "libibcoll_pmpi_mpich.so";
  route.refuses_aliases = true;
#endif
  route.allgather = allgather;
  route.allreduce_min = allreduce_min;
  route.progress = progress_mpi;
  route.raise = raise;
  route.retain_type = retain_type;
  route.release_type = release_type;
  route.retain_op = retain_op;
  route.release_op = release_op;
  if (!register_progress()) {
    use_advancer();
    route.runs_program_while_advancing = false;
  }
  route.progresses = true;
  install(route);
}

// The MPI is running; no call of it was seen, when it was started before this library was loaded.
void set_up() {
  const std::lock_guard guard(beginning);
  if (state != kNotSeen) return;
  PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget_communicator, &communicator_key, nullptr);
  PMPI_Grequest_start([](void*, MPI_Status*) { return MPI_SUCCESS; }, [](void*) { return MPI_SUCCESS; },
                      [](void*, int) { return MPI_SUCCESS; }, nullptr, &endless);
  open_persistent_requests();
  install_route();
  state = kRunning;
}

bool mpi_runs() {
  int initialized = 0, finalized = 0;
  PMPI_Initialized(&initialized);
  if (initialized != 0) PMPI_Finalized(&finalized);
  return initialized != 0 && finalized == 0;
}

Communicator* find(MPI_Comm handle) {
  static std::mutex making;
  Held* comm = nullptr;
  int found = 0;
  const auto look = [&] {
    return PMPI_Comm_get_attr(handle, communicator_key, &comm, &found) == MPI_SUCCESS && found != 0;
  };
  if (look()) return comm;
  const std::lock_guard guard(making);
  if (look()) return comm;
  comm = new Held(handle);
  if (PMPI_Comm_set_attr(handle, communicator_key, comm) == MPI_SUCCESS) return comm;
  delete comm;
  return nullptr;
}

}  // namespace

void hold(Communicator& comm) noexcept { static_cast<Held&>(comm).holders.fetch_add(1); }

void drop(Communicator& comm) noexcept {
  auto& held = static_cast<Held&>(comm);
  if (held.holders.fetch_sub(1) == 1) delete &held;
}

MPI_Comm handle_of(const Communicator& comm) noexcept {
  return static_cast<const Held&>(comm).freed ? MPI_COMM_WORLD : comm.handle();
}

void begin() {
  set_up();
  Communicator* world = communicator_of(MPI_COMM_WORLD);
  if (world == nullptr) return;
  await_all_ranks(*world);
  start_job(*world);
  everybody_knows_the_job();
}

void end() {
  if (state != kRunning) return;
  stop_advancer();
  if (Communicator* world = communicator_of(MPI_COMM_WORLD)) end_job(*world);
  state = kEnded;
  close_persistent_requests();
  PMPI_Grequest_complete(endless);
  IBCOLL_NEXT(Wait)(&endless, MPI_STATUS_IGNORE);
}

Communicator* communicator_of(MPI_Comm handle) {
  if (last.handle == handle && last.ended == ended_communicators.load(std::memory_order_relaxed) &&
      last.comm != nullptr && state.load(std::memory_order_relaxed) == kRunning) {
    return last.comm;
  }
  if (state == kEnded || handle == MPI_COMM_NULL) return nullptr;
  if (state == kNotSeen) {
    if (!mpi_runs()) return nullptr;
    set_up();
  }
  const uint64_t ended = ended_communicators;
  Communicator* comm = find(handle);
  if (comm != nullptr) last = {handle, comm, ended};
  return comm;
}

}  // namespace ibcoll::under_mpi
