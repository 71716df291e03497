// SPDX-License-Identifier: BSD-3-Clause
// Fails a team on this rank, and keeps what its calls get from then on. It sends nothing: how other ranks learn of a
// failure is in failure_notices.h.
#pragma once

#include <cstdint>
#include <string_view>

#include "runtime/comm/node_window.h"
#include "runtime/engine/engine.h"
#include "runtime/engine/team_failure.h"
#include "runtime/engine/team_members.h"

namespace ibcoll {

class TeamHealth {
 public:
  // All outlive it. `window`: nullptr when no two ranks of the team share a node.
  TeamHealth(Engine& engine, const TeamMembers& members, NodeWindow* window) noexcept
      : engine_(engine), members_(members), window_(window), failure_(members.rank(), members.size()) {}

  bool good() const noexcept { return failure_.healthy(); }
  // Ok, or why the team accepts no collectives any more.
  const Status& status() const noexcept { return failure_.status(); }
  TeamFailure& failure() noexcept { return failure_; }
  const TeamFailure& failure() const noexcept { return failure_; }

  // ---- what fails it. `op`: the call that does; 0: not known.

  // Ends everything in flight on all ranks of the team with this error.
  void fail(Status status, uint32_t op = 0) noexcept;
  // The same, where a peer may know a better cause, or a death may explain it: this rank waits a little for that, and
  // reports it instead.
  void suspect(Status status, uint32_t op = 0) noexcept;
  // Both ranks of a suspicion know what differs.
  void explain(const Status& status, uint32_t op) noexcept;
  void on_death(int peer, std::string_view why) noexcept;
  // A better reason for that, which counts unless ranks were notified of the other one.
  void explain_death(int peer, std::string_view how) noexcept;
  // Another rank has notified this one. `pass_on`: and may not reach all others.
  // `dead_peer`: the rank of the team whose death is the cause; -1: no death is, or none is known.
  void learn(Status status, uint32_t op, bool pass_on, int dead_peer) noexcept;
  // Other ranks wait in vain for what another process has overwritten in the node window, and would blame this rank.
  void check_own_line() noexcept;

  // ---- what calls get

  // The call that failed the team; 0: not known.
  uint32_t failed_op() const noexcept { return failed_op_; }
  // The last call that ended with the failure: it may be the one that failed the team, as far as is known; or a later
  // one, which was in flight or was not even started.
  enum class Ended { kAsFailed, kInFlight, kRefused };
  Ended last_ended() const noexcept { return last_ended_; }
  // Call `op` ends.
  void ends(uint32_t op) noexcept {
    if (!good()) [[unlikely]]
      last_ended_ = is_later(op) ? Ended::kInFlight : Ended::kAsFailed;
  }
  // The failure, for call `op`, which is refused.
  const Status& refusal(uint32_t op) noexcept {
    last_ended_ = is_later(op) ? Ended::kRefused : Ended::kAsFailed;
    return failure_.report();
  }

 private:
  bool is_later(uint32_t op) const noexcept;
  Status death_of(int peer, std::string_view why) const noexcept;
  void begin_to_fail(uint32_t op) noexcept;

  Engine& engine_;
  const TeamMembers& members_;
  NodeWindow* window_;
  TeamFailure failure_;
  uint32_t failed_op_ = 0;
  Ended last_ended_ = Ended::kAsFailed;
};

}  // namespace ibcoll
