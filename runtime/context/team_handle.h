// SPDX-License-Identifier: BSD-3-Clause
// A team and what belongs to it on this rank.
#pragma once

#include <list>
#include <memory>
#include <vector>

#include "runtime/context/node_windows.h"
#include "runtime/context/plans.h"
#include "runtime/context/team_profile.h"
#include "runtime/engine/team.h"

namespace ibcoll {

class Context;

struct TeamHandle {
  TeamHandle() = default;
  TeamHandle(const TeamHandle&) = delete;
  TeamHandle& operator=(const TeamHandle&) = delete;
  // Requests end before their team. Buffers that other ranks may still write to are freed after the team, whose end
  // polls once more.
  ~TeamHandle() {
    plans.clear();
    for (GivenUp& one : given_up) one.request.reset();
    team.reset();
  }

  Context* context = nullptr;
  LoneWindow lone_window;
  std::unique_ptr<Team> team;
  std::list<LeftWindow> shared_window;  // one, or none
  TeamProfile profile;
  Plans plans;           // of calls that run once
  uint32_t ballots = 0;  // that this rank has taken part in (agreement.h)
  // A request of the runtime itself, given up while another rank could still write to the buffers (Request::overdue).
  struct GivenUp {
    std::unique_ptr<Request> request;
    std::vector<std::byte> buffers;
  };
  std::vector<GivenUp> given_up;

  // BUSY: requests of the program or of the runtime are left, so `call`, which ends the team, must be refused.
  Status may_end(const char* call);
};

}  // namespace ibcoll
