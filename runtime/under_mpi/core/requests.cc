// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/under_mpi/core/requests.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

#include "runtime/under_mpi/core/collectives.h"
#include "runtime/under_mpi/core/counters.h"
#include "runtime/under_mpi/core/failure.h"
#include "runtime/under_mpi/core/job.h"
#include "runtime/under_mpi/core/kept_call.h"
#include "runtime/under_mpi/core/prepared.h"
#include "runtime/under_mpi/core/queue.h"
#include "runtime/under_mpi/core/registry.h"
#include "runtime/under_mpi/core/route.h"
#include "runtime/under_mpi/core/settings.h"

namespace ibcoll::under_mpi {

class HostRequest {
 public:
  HostRequest(Communicator& comm, const Call& call, Completion completion)
      : comm_(comm),
        rank_(comm.rank()),
        completion_(completion),
        team_(comm.team()),
        call_(call, comm.rank(), comm.size()),
        uses_(call, comm.rank(), comm.size()) {}
  ~HostRequest();

  // Takes what was prepared from the call.
  void take(std::unique_ptr<Prepared> prepared) noexcept { prepared_ = std::move(prepared); }
  ibcoll_status_t start_once() noexcept { return ibcoll_collective_start(team_, &prepared_->args, &request_); }
  // Collective. Ranks may start their persistent requests in different orders (MPI 4.0, section 6.12), but match what
  // they start on a team by its order: each request has a team of its own.
  Reason make_persistent();
  ibcoll_status_t start_again();
  void count() const noexcept;
  // Looks at the request, without progress. True: it is complete, and complete() may be called.
  bool look() noexcept;
  void complete() noexcept;

  bool persistent() const noexcept { return persistent_; }
  const Communicator& comm() const noexcept { return comm_; }
  Collective collective() const noexcept { return call_.call().collective; }

  bool in_flight = false;
  bool released = false;  // freed by the program while in flight
  HostRequest* next = nullptr;

 private:
  Communicator& comm_;  // may end before a nonblocking call is complete: not looked at then
  int rank_;
  Completion completion_;
  ibcoll_team_t team_;
  KeptCall call_;
  Uses uses_;
  std::unique_ptr<Prepared> prepared_;
  ibcoll_request_t request_ = nullptr;
  ibcoll_status_t status_ = IBCOLL_OK;
  bool persistent_ = false;
};

namespace {

// A team takes about a megabyte of each rank's memory.
constexpr int kMostPersistent = 256;
std::atomic<int> persistent_requests{0};

std::mutex lock;
auto& flying = *new Queue<HostRequest>;  // never destroyed, as the registry
std::atomic<int> number{0};

// ibcoll runs it already: nothing may fail here.
void fly(HostRequest* request) noexcept {
  const std::lock_guard guard(lock);
  flying.append(request);
  request->in_flight = true;
  number.store(number.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

// `collective`: the call may wait for the other ranks.
Reason decide(Communicator& comm, const Call& call, bool collective) {
  Reason reason = route().progresses ? comm.decide(collective) : Reason::kNoProgress;
  if (reason == Reason::kNone && !listed(call.collective)) reason = Reason::kNotListed;
  if (reason == Reason::kNone && !route().runs_program_while_advancing && call.op != MPI_OP_NULL &&
      !is_predefined(call.op)) {
    reason = Reason::kNoProgress;
  }
  return reason;
}

int fall(const Call& call, Reason reason) {
  count_fell(call.collective, reason);
  return kFallsThrough;
}

}  // namespace

HostRequest::~HostRequest() {
  ibcoll_request_free(request_);
  if (!persistent_) return;
  free_team(team_);
  persistent_requests.fetch_sub(1);
}

Reason HostRequest::make_persistent() {
  const bool room = persistent_requests.fetch_add(1) < kMostPersistent;
  persistent_ = true;
  team_ = nullptr;
  return comm_.make_team(room ? Reason::kNone : Reason::kNoRoom, &team_);
}

// Copies are packed anew for each start; without them ibcoll's own persistent request does.
ibcoll_status_t HostRequest::start_again() {
  if (!prepared_->staged()) {
    if (request_ == nullptr) {
      const ibcoll_status_t status = ibcoll_collective_init(team_, &prepared_->args, &request_);
      if (status != IBCOLL_OK) return status;
    }
    return ibcoll_start(request_);
  }
  prepared_ = std::make_unique<Prepared>();
  prepared_->prepare(comm_, call_.call());  // as it did at first
  return start_once();
}

void HostRequest::count() const noexcept {
  count_ran(collective(), prepared_->bytes);
  if (settings().verbose > 0) count_algorithm(collective(), ibcoll_request_algorithm(request_));
}

bool HostRequest::look() noexcept {
  status_ = ibcoll_request_status(request_);
  // A request that runs once is freed.
  if (status_ == IBCOLL_OK && (!persistent_ || prepared_->staged())) request_ = nullptr;
  return status_ != IBCOLL_IN_PROGRESS;
}

void HostRequest::complete() noexcept {
  int code = MPI_SUCCESS;
  if (status_ == IBCOLL_OK) {
    prepared_->unpack_all();
    if (prepared_->truncated())
      code = report_truncated(rank_, collective(), prepared_->own_sent, prepared_->own_offered);
  } else {
    code = report_failure(rank_, collective(), status_);
    if (status_ == IBCOLL_ERR_BUFFERS_HELD) prepared_->abandon();
  }
  if (!released) completion_.function(completion_.user, code);
}

bool persistent_requests_exist() noexcept { return persistent_requests > 0; }

int requests_in_flight() noexcept { return number.load(std::memory_order_relaxed); }

int complete_requests() noexcept {
  Queue<HostRequest> done;
  int completed = 0;
  {
    // Another thread completes them, or this one does further up.
    const std::unique_lock guard(lock, std::try_to_lock);
    if (!guard.owns_lock()) return 0;
    const auto is_done = [](HostRequest& request) {
      if (!request.look()) return false;
      request.in_flight = false;
      return true;
    };
    completed = flying.move(is_done, done);
    number.store(number.load(std::memory_order_relaxed) - completed, std::memory_order_relaxed);
  }
  while (HostRequest* const request = done.take_first()) {
    const bool last = !request->persistent() || request->released;
    request->complete();
    if (last) delete request;
  }
  return completed;
}

int run_nonblocking(Communicator& comm, const Call& call, Completion completion) noexcept {
  try {
    if (const Reason reason = decide(comm, call, false); reason != Reason::kNone) return fall(call, reason);
    auto prepared = std::make_unique<Prepared>();
    const Reason reason = prepared->prepare(comm, call);
    if (reason == Reason::kBadArguments) refuse(comm, call.collective);
    if (reason != Reason::kNone) return fall(call, reason);
    auto request = std::make_unique<HostRequest>(comm, call, completion);
    request->take(std::move(prepared));
    comm.count_call();
    if (comm.failed()) return route().raise(comm, report_after_mismatch(comm.rank(), call.collective));
    const ibcoll_status_t status = request->start_once();
    if (status != IBCOLL_OK) return fail(comm, call.collective, status);
    request->count();
    fly(request.release());
    return MPI_SUCCESS;
  } catch (const std::bad_alloc&) {
    return route().raise(comm, MPI_ERR_NO_MEM);
  }
}

int prepare(Communicator& comm, const Call& call, Completion completion, HostRequest** result) noexcept {
  try {
    if (const Reason reason = decide(comm, call, true); reason != Reason::kNone) return fall(call, reason);
    auto prepared = std::make_unique<Prepared>();
    const Reason found = prepared->prepare(comm, call);
    ibcoll_team_t none = nullptr;
    if (found == Reason::kBadArguments) comm.make_team(Reason::kRefused, &none);
    if (found != Reason::kNone) return fall(call, found);
    auto request = std::make_unique<HostRequest>(comm, call, completion);
    request->take(std::move(prepared));
    if (const Reason reason = request->make_persistent(); reason != Reason::kNone) return fall(call, reason);
    *result = request.release();
    return MPI_SUCCESS;
  } catch (const std::bad_alloc&) {
    return route().raise(comm, MPI_ERR_NO_MEM);
  }
}

int start(HostRequest* request) noexcept {
  try {
    const ibcoll_status_t status = request->start_again();
    if (status != IBCOLL_OK) {
      return route().raise(request->comm(), report_failure(request->comm().rank(), request->collective(), status));
    }
    request->count();
    fly(request);
    return MPI_SUCCESS;
  } catch (const std::bad_alloc&) {
    return route().raise(request->comm(), MPI_ERR_NO_MEM);
  }
}

void release(HostRequest* request) noexcept {
  {
    const std::lock_guard guard(lock);
    if (request->in_flight) {
      request->released = true;
      return;
    }
  }
  delete request;
}

}  // namespace ibcoll::under_mpi
