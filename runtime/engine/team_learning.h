// SPDX-License-Identifier: BSD-3-Clause
// The engine's half of learning: what a team has learned of each class of its calls, the times that are being merged, and
// the calls whose start waits for a decision.
//
// The first timed call of a trial begins with a barrier, and times on a rank are those from the end of the barrier. So it
// does not matter who comes late, or leaves early: a rank that comes last may find its part done and leave at once, while
// others still pass on what it has brought.
//
// All ranks of a team start its collectives in one order, so they agree on the number of each call. The merge is a
// collective of the team itself, an allreduce that starts right before a call whose number all ranks know. A call that
// needs its result, and comes before that, is in line: its start returns, and it begins when the merge has ended, as do
// the calls of the team behind it.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "runtime/collectives/framework/select.h"
#include "runtime/collectives/learning/call_class.h"
#include "runtime/collectives/learning/learner.h"

namespace ibcoll {

class Request;
class Team;

// Of one class of calls. Its address and the names of its candidates stay as long as the team.
struct LearnedClass {
  struct Named {
    Choice choice;
    std::string name;
  };

  LearnedClass(const CallClass& for_key, const std::vector<Candidate>& candidates);
  ~LearnedClass();

  const CallClass key;
  std::vector<Named> candidates;  // by predicted cost
  bool admitted = false;          // it is learned, see TeamLearning::kMostClasses
  bool predicted = false;         // it is not, as there are too many
  Learner learner;
  bool was_read = false;    // the choice is that of an earlier job, until it is learned again
  Learner::Times merged{};  // the result of the merge
  Learner::Times mine{};    // and what this rank gives for it
  std::unique_ptr<Request> merge;
};

class TeamLearning {
 public:
  static constexpr int kMostClasses = 128;  // of a team: those whose calls start first
  static constexpr size_t kMostCandidates = 32;

  // `merge`: the algorithm of the allreduce that merges times. `barrier`: what timed calls begin with.
  TeamLearning(Team& team, const Choice& merge, const Algorithm& barrier)
      : team_(team), merge_(merge), barrier_(barrier) {}
  const Algorithm& barrier() const noexcept { return barrier_; }

  // nullptr: there was no such call yet.
  LearnedClass* find(const CallClass& key) noexcept;
  // `candidates`: two or more. Throws std::bad_alloc.
  LearnedClass& add(const CallClass& key, const std::vector<Candidate>& candidates);
  const std::list<LearnedClass>& classes() const noexcept { return classes_; }
  // Requests of the team that are not the program's, and those of them that are in flight.
  int requests() const noexcept { return static_cast<int>(classes_.size()); }
  bool merging() const noexcept;

  // Binds the algorithm of the request's next run, before which a merge may start. False: not yet, the request must
  // wait in line.
  bool admit(Request& request) noexcept;

 private:
  Team& team_;
  Choice merge_;
  const Algorithm& barrier_;
  std::list<LearnedClass> classes_;
  int admitted_ = 0;
};

}  // namespace ibcoll
