// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/engine/team_health.h"

#include <utility>

#include "runtime/base/log.h"
#include "runtime/engine/calls_in_flight.h"

namespace ibcoll {

void TeamHealth::fail(Status status, uint32_t op) noexcept {
  if (failure_.fail(std::move(status), engine_.now())) begin_to_fail(op);
}

void TeamHealth::suspect(Status status, uint32_t op) noexcept {
  if (failure_.suspect(std::move(status), engine_.now())) begin_to_fail(op);
}

void TeamHealth::explain(const Status& status, uint32_t op) noexcept {
  suspect(status);
  if (failure_.explain(status)) failed_op_ = op;
}

void TeamHealth::on_death(int peer, std::string_view why) noexcept {
  if (failure_.see_death(peer, death_of(peer, why), engine_.now())) begin_to_fail(0);
}

void TeamHealth::explain_death(int peer, std::string_view how) noexcept {
  failure_.explain_death(peer, death_of(peer, how));
}

void TeamHealth::learn(Status status, uint32_t op, bool pass_on, int dead_peer) noexcept {
  if (!failure_.learn(std::move(status), engine_.now(), pass_on, dead_peer)) return;
  failed_op_ = op;
  begin_to_fail(op);
}

void TeamHealth::begin_to_fail(uint32_t op) noexcept {
  if (op != 0) failed_op_ = op;
  log(LogLevel::kInfo, "team {} ({} ranks, the first is {}): {}", members_.number(), members_.size(),
      members_.job_rank(0), status().text());
  engine_.team_failed();
}

void TeamHealth::check_own_line() noexcept {
  if (!window_ || !good() || window_->steps().own_line_intact()) return;
  fail(error(IBCOLL_ERR_SYSTEM,
             "rank {}: what this rank has published in the node window is spoiled: a process has overwritten the "
             "node's shared memory by a write that is not ibcoll's; run the program with a memory checker",
             members_.rank()));
}

bool TeamHealth::is_later(uint32_t op) const noexcept { return failed_op_ != 0 && is_after(op, failed_op_); }

Status TeamHealth::death_of(int peer, std::string_view why) const noexcept {
  return error(IBCOLL_ERR_PEER_FAILED, "rank {} of the job (rank {} of the team) failed: {}", members_.job_rank(peer),
               peer, why);
}

}  // namespace ibcoll
