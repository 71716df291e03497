// SPDX-License-Identifier: BSD-3-Clause
// A collective's use of the node window of its team: when it may begin to, and what the ranks of the node have
// published. Ranks are those of the window, `local`, unless said otherwise.
#pragma once

#include <cstdint>

#include "runtime/comm/node_window.h"
#include "runtime/engine/exchange_state.h"

namespace ibcoll {

class NodeSide {
 public:
  // Both outlive it. `window`: nullptr when no two ranks of the team share a node; then nothing else may be called but
  // begin() and end().
  NodeSide(ExchangeState& state, NodeWindow* window) noexcept : state_(state), window_(window) {}
  // A new run begins.
  void begin(bool uses_window) noexcept {
    uses_window_ = uses_window;
    if (uses_window) ticket_ = window_->queue().take_ticket();
  }
  void end() noexcept {
    if (uses_window_) window_->queue().return_ticket(ticket_);
  }

  NodeWindow& window() const noexcept { return *window_; }
  // No earlier collective of this rank uses the window.
  bool may_use_window() const noexcept { return window_->queue().is_first(ticket_); }
  // Fails when the next step of the window cannot begin for that reason. Never true: the wait is not over.
  bool no_memory_for_step() noexcept;
  bool peer_published(int local, uint64_t parts) noexcept;
  // A rank that has published as many parts as are awaited of it (0: none are); -1: no rank has.
  int peer_with_part(const uint32_t* parts) noexcept;
  // The rank that had not published when its publication was looked for last.
  int lagging() const noexcept { return lagging_; }
  int team_rank_of(int local) const noexcept { return state_.team().members().team_rank(window_->job_rank(local)); }
  // -1: the team rank is on another node, or this rank itself.
  int local_of(int team_rank) const noexcept;
  // What the rank has published belongs to another call.
  void other_call(int team_rank) noexcept { state_.team().questions().other_call(team_rank, state_.op()); }

 private:
  [[gnu::noinline]] void fail_for_digest(int local) noexcept;

  ExchangeState& state_;
  NodeWindow* window_;
  bool uses_window_ = false;
  int lagging_ = 0;
  uint64_t ticket_ = 0;
};

}  // namespace ibcoll
