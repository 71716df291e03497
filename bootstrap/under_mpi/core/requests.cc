// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/under_mpi/core/requests.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

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
  // What has become of it, without progress. True: it is complete, and complete() may be called.
  bool look() noexcept;
  void complete() noexcept;

  bool persistent() const noexcept { return persistent_; }
  const Communicator& comm() const noexcept { return comm_; }
  Collective collective() const noexcept { return call_.call().collective; }

  bool in_flight = false;
  bool released = false;  // freed by the program while in flight
  Request* next = nullptr;

 private:
  Communicator& comm_;  // may end before a nonblocking call is complete: not looked at then
  int rank_;
  Completion completion_;
  KeptCall call_;
  Uses uses_;
  std::unique_ptr<Prepared> prepared_;
  ibcoll_request_t request_ = nullptr;
  ibcoll_status_t status_ = IBCOLL_OK;
  bool persistent_ = false;
};

namespace {

// A queue through the requests themselves: it takes no memory.
class Queue {
 public:
  Queue() = default;
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  void append(Request* request) noexcept {
    request->next = nullptr;
    *end_ = request;
    end_ = &request->next;
  }
  // NULL: it is empty.
  Request* take_first() noexcept {
    Request* const request = first_;
    if (request == nullptr) return nullptr;
    first_ = request->next;
    if (first_ == nullptr) end_ = &first_;
    return request;
  }
  // Moves those that `which` holds for; returns their number.
  template <typename Which>
  int move(Which which, Queue& to) noexcept {
    int moved = 0;
    Request** at = &first_;
    while (Request* const request = *at) {
      if (!which(*request)) {
        at = &request->next;
        continue;
      }
      *at = request->next;
      to.append(request);
      ++moved;
    }
    end_ = at;
    return moved;
  }

 private:
  Request* first_ = nullptr;
  Request** end_ = &first_;
};

std::mutex lock;
Queue flying;
std::atomic<int> number{0};

// ibcoll runs it already: nothing may fail here.
void fly(Request* request) noexcept {
  const std::lock_guard guard(lock);
  flying.append(request);
  request->in_flight = true;
  number.store(number.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
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

bool Request::look() noexcept {
  status_ = ibcoll_request_status(request_);
  // A request that runs once is gone.
  if (status_ == IBCOLL_OK && (!persistent_ || prepared_->staged())) request_ = nullptr;
  return status_ != IBCOLL_IN_PROGRESS;
}

void Request::complete() noexcept {
  int code = MPI_SUCCESS;
  if (status_ == IBCOLL_OK) {
    prepared_->unpack_all();
  } else {
    code = report_failure(rank_, collective(), status_);
    if (status_ == IBCOLL_ERR_BUFFERS_HELD) prepared_->abandon();
  }
  if (!released) completion_.function(completion_.user, code);
}

int requests_in_flight() noexcept { return number.load(std::memory_order_relaxed); }

int complete_requests() noexcept {
  Queue done;
  int completed = 0;
  {
    // Another thread completes them, or this one does further up.
    const std::unique_lock guard(lock, std::try_to_lock);
    if (!guard.owns_lock()) return 0;
    const auto is_done = [](Request& request) {
      if (!request.look()) return false;
      request.in_flight = false;
      return true;
    };
    completed = flying.move(is_done, done);
    number.store(number.load(std::memory_order_relaxed) - completed, std::memory_order_relaxed);
  }
  while (Request* const request = done.take_first()) {
    const bool last = !request->persistent() || request->released;
    request->complete();
    if (last) delete request;
  }
  return completed;
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
