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
    std::string members;  // ranks of the job, as rendezvous::pack_ranks() packs them
    std::string offer;
  };

  // As the first vote says. `gone`: ranks of the job that have.
  Ballot(Arbiter::Call call, std::string members, const std::vector<bool>& gone);

  // "ibcoll_team_shrink of the team of ranks 0-4"
  std::string name() const;
  bool has(int rank) const { return has_[static_cast<size_t>(rank)]; }
  const std::vector<int>& members() const { return members_; }
  bool votes_waiting(int rank) const { return state_ == State::kOpen && votes_.contains(rank); }
  // "": it counts. Else why the ballot is refused.
  std::string take(int rank, Vote vote);
  // The rank is accused: its vote, if it has one, does not count.
  void accuse(int rank) { silenced_ += votes_.contains(rank) ? 1 : 0; }
  void leave(int rank, bool accused);
  // It waits for no member any more: each one has voted, or has gone.
  bool complete() const { return absent_ + silenced_ == 0; }
  // Members for which it waits: those that have not voted, or whose votes do not count, and have not gone.
  std::vector<int> missing(const std::vector<bool>& gone, const std::vector<bool>& accused) const;
  // Decides. The voters that live get the verdict.
  std::vector<int> agree(const std::vector<bool>& gone, uint64_t number);
  std::vector<int> refuse(ibcoll_status_t code, std::string text, const std::vector<bool>& gone);
  State state() const { return state_; }
  const Arbiter::Verdict& verdict() const { return verdict_; }
  // Every member has the verdict, or has gone.
  bool is_over() const;

 private:
  const Arbiter::Call call_;
  const std::string packed_members_;
  const std::vector<bool> has_;
  std::vector<int> members_;
  size_t absent_ = 0;          // members that have not voted, nor gone
  size_t silenced_ = 0;        // members that have voted, are accused, and have not gone
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
  // The rank has closed its connection, and its process may run on. It is as if accused, and must end once others vote
  // with it.
  void desert(int rank);
  bool awaits(int rank) const;
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
  void silence(int rank);
  void forget_those_that_are_over();

  std::map<Arbiter::Key, Ballot> ballots_;
  std::vector<bool> gone_;
  std::vector<bool> accused_;
  std::vector<const Arbiter::Key*> waits_in_;  // of each rank; nullptr: in none
  uint64_t agreed_ = 0;                        // ballots
};

}  // namespace ibcoll::run
