// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/under_mpi/core/registry.h"

#include <algorithm>
#include <mutex>
#include <unordered_set>
#include <vector>

#include "runtime/under_mpi/core/job.h"

namespace ibcoll::under_mpi {

namespace {

// Never destroyed: communicators may go after the destructors of statics have run.
struct Registry {
  std::mutex lock;
  std::unordered_set<Communicator*> communicators;
  std::vector<ibcoll_team_t> late;
};

Registry& registry() {
  static auto* const one = new Registry;
  return *one;
}

}  // namespace

void enter(Communicator& comm) noexcept {
  const std::lock_guard guard(registry().lock);
  registry().communicators.insert(&comm);
}

void forget(Communicator& comm) noexcept {
  const std::lock_guard guard(registry().lock);
  registry().communicators.erase(&comm);
}

bool leave_all(Reason reason) noexcept {
  std::vector<Communicator*> all;
  {
    const std::lock_guard guard(registry().lock);
    all.assign(registry().communicators.begin(), registry().communicators.end());
  }
  for (Communicator* comm : all) comm->leave(reason);
  return free_late_teams();
}

void free_team(ibcoll_team_t team) noexcept {
  if (team == nullptr || context() == nullptr || team == ibcoll_team_world(context())) return;
  if (ibcoll_team_free(team) != IBCOLL_ERR_BUSY) return;
  const std::lock_guard guard(registry().lock);
  registry().late.push_back(team);
}

bool free_late_teams() noexcept {
  const std::lock_guard guard(registry().lock);
  auto& late = registry().late;
  late.erase(std::remove_if(late.begin(), late.end(),
                            [](ibcoll_team_t team) { return ibcoll_team_free(team) != IBCOLL_ERR_BUSY; }),
             late.end());
  return late.empty();
}

}  // namespace ibcoll::under_mpi
