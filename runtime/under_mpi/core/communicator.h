// SPDX-License-Identifier: BSD-3-Clause
// Core's data about a communicator. A route makes one for each communicator, and destroys it with the communicator.
#pragma once

#include <ibcoll.h>
#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/under_mpi/core/collective.h"
#include "runtime/under_mpi/core/repeated_calls.h"

namespace ibcoll::under_mpi {

class Communicator {
 public:
  // Local, and touches no function of MPI: the communicator need not be complete yet. `owner` is the route's own.
  explicit Communicator(MPI_Comm handle, void* owner = nullptr) noexcept;
  // Local. Frees the team; where requests are in flight, once these are complete.
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  MPI_Comm handle() const noexcept { return handle_; }
  void* owner() const noexcept { return owner_; }
  // Valid once a collective was called on it.
  int rank() const noexcept { return rank_; }
  int size() const noexcept { return size_; }

  // Whether ibcoll runs collectives here; kNone: it does. The first blocking collective decides, together with the
  // other ranks: it starts the job where the communicator is MPI_COMM_WORLD, and makes the team. A nonblocking one only
  // looks.
  Reason decide(bool blocking) noexcept {
    return state_.load(std::memory_order_acquire) == kDecided ? reason_ : decide_now(blocking);
  }
  ibcoll_team_t team() const noexcept { return team_; }
  // Blocking calls that ran on the team. None is kept where ibcoll runs none any more.
  RepeatedCalls& repeated() noexcept { return repeated_; }
  // The number of the next call that ibcoll runs, or that the MPI refuses on this rank alone: as on the other ranks.
  uint64_t count_call() noexcept { return ++number_; }
  // A call has ended as the ranks' calls do not match, so no other one can run on the team.
  bool failed() const noexcept { return failed_; }
  void fail() noexcept {
    failed_ = true;
    repeated_.forget_all();
  }
  // In a blocking call, once it has failed: waits until all ranks are in the call with the greatest number of theirs,
  // and leaves that one and what follows to the MPI. kMismatch: this call is it, and no rank has lost what it passed in
  // (`intact`). kNone: it is an error here.
  Reason meet(uint64_t number, Collective collective, bool intact) noexcept;
  // Another team of the same ranks, for free_team(). Collective, where ibcoll runs collectives. `able`: kNone, or why
  // this rank takes no more team: kNoRoom, kRefused. kNone, or the reason that all ranks find. Throws std::bad_alloc.
  Reason make_team(Reason able, ibcoll_team_t* team);

  // The job ends: no collective of ibcoll runs here any more.
  void leave(Reason reason) noexcept;

 private:
  friend void start_job(Communicator& world) noexcept;
  enum State : int { kUndecided, kDecided };
  Reason decide_now(bool blocking) noexcept;
  bool look() noexcept;
  Reason decided(Reason reason) noexcept;
  ibcoll_status_t create(const std::vector<int>& ranks, uint64_t id, ibcoll_team_t* team);
  std::string refusal() const;

  MPI_Comm handle_;
  void* owner_;
  std::atomic<int> state_{kUndecided};
  Reason reason_ = Reason::kNone;
  // These depend on the communicator alone, and are known without the other ranks.
  bool known_ = false;
  Reason local_ = Reason::kNone;
  int rank_ = 0;
  int size_ = 0;
  // Blocking collectives so far, and the number from which on the ranks ask each other again whether the job has
  // started.
  uint64_t calls_ = 0;
  uint64_t next_vote_ = 0;
  ibcoll_team_t team_ = nullptr;
  RepeatedCalls repeated_;
  uint64_t number_ = 0;
  bool failed_ = false;
};

}  // namespace ibcoll::under_mpi
