// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/under_mpi/core/requests.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

#include "bootstrap/under_mpi/core/collectives.h"
#include "bootstrap/under_mpi/core/counters.h"
#include "bootstrap/under_mpi/core/failure.h"
#include "bootstrap/under_mpi/core/job.h"
#include "bootstrap/under_mpi/core/kept_call.h"
#include "bootstrap/under_mpi/core/prepared.h"
#include "bootstrap/under_mpi/core/route.h"
#include "bootstrap/under_mpi/core/settings.h"

namespace ibcoll::under_mpi {

class Request {
 public:
  Request(Communicator& comm, const Call& call, Completion completion)
      : comm_(comm),
        rank_(comm.rank()),
        completion_(completion),
        call_(call, comm.rank(), comm.size()),
        uses_(call, comm.rank(), comm.size()) {}
  ~Request() { ibcoll_request_free(request_); }

  // Takes what was prepared from the call.
  void take(std::unique_ptr<Prepared> prepared) noexcept { prepared_ = std::move(prepared); }
  ibcoll_status_t start_once() noexcept { return ibcoll_collective_start(comm_.team(), &prepared_->args, &request_); }
  void make_persistent() noexcept { persistent_ = true; }
  ibcoll_status_t start_again();
  void count() const noexcept;
  ibcoll_status_t test() noexcept;
  void complete(ibcoll_status_t status) noexcept;

  bool persistent() const noexcept { return persistent_; }
  const Communicator& comm() const noexcept { return comm_; }
  Collective collective() const noexcept { return call_.call().collective; }

  bool in_flight = false;
  bool released = false;  // freed by the program while in flight

 private:
  Communicator& comm_;  // may end before a nonblocking call is complete: not looked at then
  int rank_;
  Completion completion_;
  KeptCall call_;
  Uses uses_;
  std::unique_ptr<Prepared> prepared_;
  ibcoll_request_t request_ = nullptr;
  bool persistent_ = false;
};

namespace {

std::mutex lock;
std::vector<Request*> flying;
std::atomic<int> number{0};

void fly(Request* request) {
  const std::lock_guard guard(lock);
  flying.push_back(request);
  request->in_flight = true;
  number.store(static_cast<int>(flying.size()), std::memory_order_relaxed);
}

Reason decide(Communicator& comm, const Call& call) {
  Reason reason = route().progresses ? comm.decide(false) : Reason::kNoProgress;
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

// Copies are packed anew for each start; without them ibcoll's own persistent request does.
ibcoll_status_t Request::start_again() {
  if (!prepared_->staged()) {
    if (request_ == nullptr) {
      const ibcoll_status_t status = ibcoll_collective_init(comm_.team(), &prepared_->args, &request_);
      if (status != IBCOLL_OK) return status;
    }
    return ibcoll_start(request_);
  }
  prepared_ = std::make_unique<Prepared>();
  prepared_->prepare(comm_, call_.call());  // as it did at first
  return start_once();
}

void Request::count() const noexcept {
  count_ran(collective(), prepared_->bytes);
  if (settings().verbose > 0) count_algorithm(collective(), ibcoll_request_algorithm(request_));
}

ibcoll_status_t Request::test() noexcept {
  const ibcoll_status_t status = ibcoll_test(request_);
  // A request that runs once is gone.
  if (status == IBCOLL_OK && (!persistent_ || prepared_->staged())) request_ = nullptr;
  return status;
}

void Request::complete(ibcoll_status_t status) noexcept {
  int code = MPI_SUCCESS;
  if (status == IBCOLL_OK) {
    prepared_->unpack_all();
  } else {
    code = report_failure(rank_, collective(), status);
    if (status == IBCOLL_ERR_BUFFERS_HELD) prepared_->abandon();
  }
  if (!released) completion_.function(completion_.user, code);
}

int requests_in_flight() noexcept { return number.load(std::memory_order_relaxed); }

int complete_requests() noexcept {
  struct Done {
    Request* request;
    ibcoll_status_t status;
  };
  std::vector<Done> done;
  {
    // Another thread completes them, or this one does further up.
    const std::unique_lock guard(lock, std::try_to_lock);
    if (!guard.owns_lock()) return 0;
    for (size_t i = 0; i < flying.size();) {
      const ibcoll_status_t status = flying[i]->test();
      if (status == IBCOLL_IN_PROGRESS) {
        ++i;
        continue;
      }
      flying[i]->in_flight = false;
      done.push_back({flying[i], status});
      flying.erase(flying.begin() + static_cast<std::ptrdiff_t>(i));
    }
    number.store(static_cast<int>(flying.size()), std::memory_order_relaxed);
  }
  for (const Done& one : done) {
    const bool last = !one.request->persistent() || one.request->released;
    one.request->complete(one.status);
    if (last) delete one.request;
  }
  return static_cast<int>(done.size());
}

int run_nonblocking(Communicator& comm, const Call& call, Completion completion) noexcept {
  try {
    if (const Reason reason = decide(comm, call); reason != Reason::kNone) return fall(call, reason);
    auto prepared = std::make_unique<Prepared>();
    if (const Reason reason = prepared->prepare(comm, call); reason != Reason::kNone) return fall(call, reason);
    auto request = std::make_unique<Request>(comm, call, completion);
    request->take(std::move(prepared));
    const ibcoll_status_t status = request->start_once();
    if (status != IBCOLL_OK) return route().raise(comm, report_failure(comm.rank(), call.collective, status));
    request->count();
    fly(request.release());
    return MPI_SUCCESS;
  } catch (const std::bad_alloc&) {
    return route().raise(comm, MPI_ERR_NO_MEM);
  }
}

int prepare(Communicator& comm, const Call& call, Completion completion, Request** result) noexcept {
  try {
    if (const Reason reason = decide(comm, call); reason != Reason::kNone) return fall(call, reason);
    auto prepared = std::make_unique<Prepared>();
    if (const Reason reason = prepared->prepare(comm, call); reason != Reason::kNone) return fall(call, reason);
    auto request = std::make_unique<Request>(comm, call, completion);
    request->take(std::move(prepared));
    request->make_persistent();
    *result = request.release();
    return MPI_SUCCESS;
  } catch (const std::bad_alloc&) {
    return route().raise(comm, MPI_ERR_NO_MEM);
  }
}

int start(Request* request) noexcept {
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

void release(Request* request) noexcept {
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
