// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/engine/node_side.h"

namespace ibcoll {

bool NodeSide::no_memory_for_step() noexcept {
  if (const Status& trouble = window_->memory().trouble(); !trouble.ok()) [[unlikely]]
    state_.health().fail(error(trouble.code(), "rank {}: no memory for the node window of the team: {}",
                               state_.team().rank(), trouble.text()));
  return false;
}

bool NodeSide::peer_published(int local, uint64_t parts) noexcept {
  if (!window_->published(local, parts)) {
    lagging_ = local;
    return false;
  }
  if (window_->steps().digest(local) == window_->steps().digest(window_->rank())) return true;
  fail_for_digest(local);
  return false;
}

// It is that of another call, or no digest at all.
void NodeSide::fail_for_digest(int local) noexcept {
  state_.health().check_own_line();
  if (window_->steps().plausible(local))
    other_call(team_rank_of(local));
  else
    state_.health().fail(
        error(IBCOLL_ERR_SYSTEM,
              "rank {}: what rank {} has published in the node window is spoiled: a process has overwritten the "
              "node's shared memory by a write that is not ibcoll's; run the program with a memory checker",
              state_.team().rank(), team_rank_of(local)));
}

int NodeSide::peer_with_part(const uint32_t* parts) noexcept {
  for (int local = window_->next(window_->rank()); local != window_->rank(); local = window_->next(local))
    if (parts[local] > 0 && peer_published(local, parts[local])) return local;
  return -1;
}

int NodeSide::local_of(int team_rank) const noexcept {
  for (int local = 0; local < window_->size(); ++local)
    if (local != window_->rank() && team_rank_of(local) == team_rank) return local;
  return -1;
}

}  // namespace ibcoll
