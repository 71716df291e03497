// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "bootstrap/arbiter.h"

namespace ibcoll::run {

// One ballot, without any I/O: ranks of one job that agree which of them have died. Every living member votes. It is
// decided when no living member is missing, once and for all: a rank that asks later gets the same
// answer.
class Ballot {
 public:
  enum class State { kOpen, kAgreed, kRefused };
  struct Vote {
    Arbiter::Call call;
    uint64_t flags = 0;
    std::vector<bool> members;  // by rank of the job
    std::string offer;
  };

  // As the first vote says.
  Ballot(Arbiter::Call call, std::vector<bool> members) : call_(call), members_(std::move(members)) {}

  // "ibcoll_team_shrink of the team of ranks 0-4"
  std::string name() const;
  bool has(int rank) const { return members_[static_cast<size_t>(rank)]; }
  bool votes_waiting(int rank) const { return state_ == State::kOpen && votes_.contains(rank); }
  // "": it counts. Else why the ballot is refused.
  std::string take(int rank, Vote vote);
  // Members for which it waits: those that have not voted, or whose votes do not count, and have not gone.
  std::vector<int> missing(const std::vector<bool>& gone, const std::vector<bool>& accused) const;
  // Decides. The voters that live and are not accused get the verdict.
  std::vector<int> agree(const std::vector<bool>& gone, const std::vector<bool>& accused, uint64_t number);
  std::vector<int> refuse(ibcoll_status_t code, std::string text, const std::vector<bool>& gone);
  State state() const { return state_; }
  const Arbiter::Verdict& verdict() const { return verdict_; }
  // Every member has the verdict, or has gone.
  bool is_over(const std::vector<bool>& gone) const;

 private:
  const Arbiter::Call call_;
  const std::vector<bool> members_;
  std::map<int, Vote> votes_;  // also those that came after the decision
  State state_ = State::kOpen;
  Arbiter::Verdict verdict_;
};

// All ballots of one series (allgather_series.h). A rank takes part in one at a time.
class Ballots {
 public:
  // A verdict and the ranks that get it now.
  struct Decision {
    std::vector<int> receivers;
    Arbiter::Verdict verdict;
  };
  using Decisions = std::vector<Decision>;

  explicit Ballots(size_t ranks) : gone_(ranks), accused_(ranks), waits_in_(ranks) {}

  // A vote of a rank that is accused, or gone, counts for nothing.
  Decisions vote(int rank, const Arbiter::Key& key, Ballot::Vote vote);
  // The rank's deadline has passed. The ballot ends, for all members, unless it is decided already.
  Decisions withdraw(int rank, const Arbiter::Key& key);
  // A rank cannot reach another any more, and counts it as dead: so must all. True: `accused` must end, and the caller
  // ends it. What an accused rank says itself is ignored, so that two that accuse each other do not both end.
  bool accuse(int accuser, int accused);
  bool is_accused(int rank) const { return accused_[static_cast<size_t>(rank)]; }
  // Its process has ended, or has left the series.
  Decisions leave(int rank);
  bool gone(int rank) const { return gone_[static_cast<size_t>(rank)]; }

 private:
  using Entry = std::map<Arbiter::Key, Ballot>::iterator;
  void decide_if_complete(Ballot& ballot, const Arbiter::Key& key, Decisions& decisions);
  void refuse(Entry entry, ibcoll_status_t code, std::string text, Decisions& decisions);
  void end_circle(int rank, Decisions& decisions);
  void hand_out(std::vector<int> receivers, const Arbiter::Key& key, const Ballot& ballot, Decisions& decisions);
  void forget_those_that_are_over();

  std::map<Arbiter::Key, Ballot> ballots_;
  std::vector<bool> gone_;
  std::vector<bool> accused_;
  std::vector<const Arbiter::Key*> waits_in_;  // of each rank; nullptr: in none
  uint64_t agreed_ = 0;                        // ballots
};

}  // namespace ibcoll::run
