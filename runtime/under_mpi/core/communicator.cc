// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/under_mpi/core/communicator.h"

#include <fmt/format.h>

#include <cstdio>

#include "runtime/under_mpi/core/job.h"
#include "runtime/under_mpi/core/members.h"
#include "runtime/under_mpi/core/registry.h"
#include "runtime/under_mpi/core/route.h"
#include "runtime/under_mpi/core/vote.h"

namespace ibcoll::under_mpi {

Communicator::Communicator(MPI_Comm handle, void* owner) noexcept : handle_(handle), owner_(owner) { enter(*this); }

Communicator::~Communicator() {
  forget(*this);
  free_team(team_);
}

void Communicator::leave(Reason reason) noexcept {
  repeated_.forget_all();
  reason_ = reason;
  state_.store(kDecided, std::memory_order_release);
  free_team(team_);
  team_ = nullptr;
}

bool Communicator::look() noexcept {
  if (known_) return true;
  int inter = 0;
  if (PMPI_Comm_test_inter(handle_, &inter) != MPI_SUCCESS) return false;
  PMPI_Comm_rank(handle_, &rank_);
  PMPI_Comm_size(handle_, &size_);
  if (inter != 0) local_ = Reason::kIntercommunicator;
  if (inter == 0 && size_ == 1) local_ = Reason::kOneProcess;
  known_ = true;
  return true;
}

Reason Communicator::decided(Reason reason) noexcept {
  if (reason != Reason::kNone) repeated_.forget_all();
  reason_ = reason;
  state_.store(kDecided, std::memory_order_release);
  return reason;
}

Reason Communicator::decide_now(bool blocking) noexcept {
  if (!look()) return Reason::kBadArguments;
  if (local_ != Reason::kNone) return decided(local_);
  if (!blocking) return Reason::kBeforeFirstBlocking;
  try {
    if (handle_ == MPI_COMM_WORLD) {
      start_job(*this);
      return decided(job_state());
    }
    if (everybody_knows() && job_state() != Reason::kNone) return decided(job_state());
    if (calls_++ < next_vote_) return Reason::kNoContext;
    const Reason reason = make_team(Reason::kNone, &team_);
    // A rank had no job yet. Votes become rarer, as the job may never start.
    if (reason == Reason::kNotRunning) next_vote_ = 2 * calls_;
    return reason == Reason::kNotRunning ? Reason::kNoContext : decided(reason);
  } catch (...) {
    return decided(Reason::kNoTeam);
  }
}

Reason Communicator::meet(uint64_t number, Collective collective, bool intact) noexcept {
  const auto mine = static_cast<int64_t>(number), kind = static_cast<int64_t>(collective);
  for (;;) {
    int64_t least[] = {mine, -mine, kind, -kind, intact ? 1 : 0};
    if (route().allreduce_min(*this, least, 5) != MPI_SUCCESS) return Reason::kNone;
    if (mine < -least[1]) return Reason::kNone;
    if (mine > least[0]) continue;                    // the others' next calls are awaited
    if (least[2] != -least[3]) return Reason::kNone;  // they differ again
    if (rank_ == 0)
      std::fprintf(stderr,
                   "ibcoll under MPI: calls on a communicator of %d ranks did not match (see the error before): from "
                   "now on %s leaves its collectives to the MPI\n",
                   size_, route().name);
    decided(Reason::kMismatch);
    return least[4] != 0 ? Reason::kMismatch : Reason::kNone;
  }
}

Reason Communicator::make_team(Reason able, ibcoll_team_t* team) {
  std::vector<int> ranks;
  const bool one_job = ranks_in_world(*this, &ranks);
  // A member of another job sees no other member's rank in its world either: all ranks find this without asking.
  if (!one_job) return Reason::kOtherJob;
  const Reason job = job_state();
  std::vector<int64_t> least = {job == Reason::kNotRunning ? 0 : 1, job == Reason::kNone ? 1 : 0,
                                able == Reason::kNone     ? 2
                                : able == Reason::kNoRoom ? 1
                                                          : 0,
                                -propose_team_id()};
  if (!agree(*this, true, "", &least) || least[0] == 0) return Reason::kNotRunning;
  if (least[1] == 0) return Reason::kNoContext;
  const int64_t id = -least[3];
  saw_team_id(id);
  if (least[2] < 2) return least[2] == 0 ? Reason::kRefused : Reason::kNoRoom;
  const ibcoll_status_t status = create(ranks, static_cast<uint64_t>(id), team);
  const bool fine = status == IBCOLL_OK;
  if (agree(*this, fine, fine ? "" : refusal())) return Reason::kNone;
  free_team(*team);
  *team = nullptr;
  return Reason::kNoTeam;
}

std::string Communicator::refusal() const {
  return fmt::format(
      "ibcoll under MPI: rank {} of {} could make no team for a communicator of {} ranks: {}; the MPI's own "
      "collectives run there",
      rank_, route().name, size_, ibcoll_last_error());
}

ibcoll_status_t Communicator::create(const std::vector<int>& ranks, uint64_t id, ibcoll_team_t* team) {
  ibcoll_members_t members = {};
  members.struct_size = sizeof members;
  members.ranks = ranks.data();
  members.count = size_;
  members.id = id;
  members.user = this;
  members.allgather = [](void* user, const void* send, void* recv, size_t bytes) {
    return route().allgather(*static_cast<const Communicator*>(user), send, recv, bytes) == MPI_SUCCESS ? 0 : 1;
  };
  return ibcoll_team_create_by_members(context(), &members, team);
}

}  // namespace ibcoll::under_mpi
