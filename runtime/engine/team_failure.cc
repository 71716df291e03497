// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/engine/team_failure.h"

#include <new>

namespace ibcoll {
namespace {

constexpr Time kDoubt = 100'000'000;  // the note of a rank that knows better is here by then
constexpr Time kTurn = 37'000'000;    // ranks come out of doubt one after the other, and the first one tells the others

}  // namespace

// Nobody is told in doubt, so what replaces a status in doubt finds all ranks listed already.
bool TeamFailure::enter(State state, Status status, Time now) noexcept {
  if (status.ok()) return false;
  if (healthy()) list_untold();
  state_ = state;
  status_ = std::move(status);
  since_ = now;
  doubt_ends_ = now + kDoubt + rank_ * kTurn % kDoubt;
  return true;
}

// Ranks for which there is no memory ask this one, by a probe, before long.
void TeamFailure::list_untold() noexcept {
  try {
    untold_.reserve(static_cast<size_t>(size_));
    for (int i = 0; i < size_; ++i)
      if (i != rank_) untold_.push_back(i);
  } catch (const std::bad_alloc&) {
  }
}

// A suspicion stays: what follows it may be an effect, as calls that differ connect other ranks. A death that was seen
// may be an effect itself.
bool TeamFailure::fail(Status status, Time now) noexcept {
  return (healthy() || state_ == State::kDeathSeen) && enter(State::kTelling, std::move(status), now);
}

bool TeamFailure::suspect(Status status, Time now) noexcept {
  return healthy() && enter(State::kSuspected, std::move(status), now);
}

void TeamFailure::explain(Status status) noexcept {
  if (state_ != State::kSuspected || explained_ || status.ok()) return;
  explained_ = true;
  status_ = std::move(status);
}

// This is in doubt, too: a rank that learns of a failure ends, and its neighbours may see that before its note arrives.
bool TeamFailure::see_death(int peer, Status status, Time now) noexcept {
  if (!healthy() && state_ != State::kSuspected) return false;
  dead_peer_ = peer;
  return enter(State::kDeathSeen, std::move(status), now);
}

void TeamFailure::explain_death(int peer, Status status) noexcept {
  if (state_ == State::kDeathSeen && dead_peer_ == peer && !status.ok()) status_ = std::move(status);
}

bool TeamFailure::learn(Status status, Time now, bool pass_on) noexcept {
  if (certain() || !enter(pass_on ? State::kTelling : State::kTold, std::move(status), now)) return false;
  if (!pass_on) untold_.clear();
  return true;
}

bool TeamFailure::end_doubt(Time now) noexcept {
  if (!in_doubt() || now < doubt_ends_) return false;
  state_ = State::kTelling;
  since_ = now;
  return true;
}

void TeamFailure::cut_doubt() noexcept {
  if (in_doubt()) state_ = State::kTelling;
}

}  // namespace ibcoll
