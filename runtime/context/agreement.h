// SPDX-License-Identifier: BSD-3-Clause
// Ballots of this rank (bootstrap/arbiter.h): it votes, and progresses until the launcher has decided.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bootstrap/bootstrap.h"
#include "runtime/context/context_lock.h"
#include "runtime/context/progress.h"
#include "runtime/context/team_handle.h"

namespace ibcoll {

class Agreement {
 public:
  using Call = Arbiter::Call;
  using Verdict = Arbiter::Verdict;

  // `bootstrap` outlives its use; the other ones outlive it.
  Agreement(const std::unique_ptr<Bootstrap>& bootstrap, Progress& progress) noexcept
      : bootstrap_(bootstrap), progress_(progress) {}

  // Deaths do not end the job.
  bool keeps_going() const noexcept { return bootstrap_->arbiter() && bootstrap_->arbiter()->keeps_going(); }
  // Ok, or why this rank cannot vote now: UNSUPPORTED without a launcher that decides; BUSY where requests of the team
  // are in flight that have not failed, or another thread votes.
  Status may_vote(const char* call, TeamHandle& team) const;
  // Blocks until the ballot is decided. `members`: ranks of the job. The dead are marked as such on this rank, and their
  // teams have failed. `offer`: as in Arbiter::Vote. Errors: those of Arbiter. `guard` is released meanwhile.
  // Until then `team`, which it is about, may not be freed.
  Result<Verdict> hold(const TeamHandle& team, Arbiter::Vote vote, ContextLock::Guard& guard);
  bool waits_for(const TeamHandle& team) const noexcept { return team_ == &team; }

 private:
  Result<Verdict> wait(Arbiter& arbiter, const Arbiter::Vote& vote, ContextLock::Guard& guard);
  Status accuse(Arbiter& arbiter, const Arbiter::Vote& vote, std::vector<bool>& accused) const;

  const std::unique_ptr<Bootstrap>& bootstrap_;
  Progress& progress_;
  const TeamHandle* team_ = nullptr;  // of the ballot that a thread of this rank waits for
};

}  // namespace ibcoll
