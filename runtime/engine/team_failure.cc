// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/engine/team_failure.h"

#include <new>

namespace ibcoll {
namespace {

constexpr Time kSuspicion = 100'000'000;  // the note of a rank that knows better has arrived by then
constexpr Time kStagger = 37'000'000;     // suspicions end one after the other, and the first rank notifies the others

}  // namespace

// Under suspicion no rank is notified, so a better cause finds all ranks listed already.
bool TeamFailure::enter(State state, Status status, Time now, int dead_peer) noexcept {
  if (status.ok()) return false;
  if (healthy()) list_pending();
  state_ = state;
  status_ = std::move(status);
  dead_peer_ = dead_peer;
  since_ = now;
  suspicion_ends_ = now + kSuspicion + rank_ * kStagger % kSuspicion;
  return true;
}

// Ranks for which there is no memory ask this one, by a probe, before long.
void TeamFailure::list_pending() noexcept {
  try {
    pending_.reserve(static_cast<size_t>(size_));
    for (int i = 0; i < size_; ++i)
      if (i != rank_) pending_.push_back(i);
  } catch (const std::bad_alloc&) {
  }
}

// A suspicion stays: what follows it may be an effect, as calls that differ connect other ranks. A death that was seen
// may be an effect itself.
bool TeamFailure::fail(Status status, Time now) noexcept {
  if (!healthy() && state_ != State::kDeathSeen) return false;
  return enter(State::kNotifying, std::move(status), now);
}

bool TeamFailure::suspect(Status status, Time now) noexcept {
  return healthy() && enter(State::kSuspected, std::move(status), now);
}

bool TeamFailure::explain(Status status) noexcept {
  if (state_ != State::kSuspected || explained_ || status.ok()) return false;
  explained_ = true;
  status_ = std::move(status);
  return true;
}

// A death is a suspicion, too: a rank that learns of a failure ends, and its neighbours may see that before its note
// arrives.
bool TeamFailure::see_death(int peer, Status status, Time now) noexcept {
  if (!healthy() && state_ != State::kSuspected) return false;
  return enter(State::kDeathSeen, std::move(status), now, peer);
}

void TeamFailure::explain_death(int peer, Status status) noexcept {
  if (state_ == State::kDeathSeen && dead_peer_ == peer && !status.ok()) status_ = std::move(status);
}

bool TeamFailure::learn(Status status, Time now, bool pass_on, int dead_peer) noexcept {
  if (certain() || !enter(pass_on ? State::kNotifying : State::kNotified, std::move(status), now, dead_peer))
    return false;
  if (!pass_on) pending_.clear();
  return true;
}

bool TeamFailure::end_suspicion(Time now) noexcept {
  if (!uncertain() || now < suspicion_ends_) return false;
  state_ = State::kNotifying;
  since_ = now;
  return true;
}

void TeamFailure::cut_suspicion() noexcept {
  if (uncertain()) state_ = State::kNotifying;
}

}  // namespace ibcoll
