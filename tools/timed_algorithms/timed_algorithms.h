// SPDX-License-Identifier: BSD-3-Clause
// Times the algorithms of one call beside each other, in one job. Repetitions alternate, so a disturbance of the machine
// hits all algorithms.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "ibcoll.h"
#include "tools/timed_algorithms/sample_call.h"

namespace ibcoll {

// Throws std::runtime_error with the text of ibcoll_last_error().
void expect_ok(ibcoll_status_t status, const char* call);

// The answer of ibcoll about a call.
struct Decision {
  std::string algorithm;                // that it takes
  std::vector<std::string> candidates;  // that apply, with their parameters
  std::string predicted;                // the candidate that predicted costs choose
  std::string key;                      // JSON: the name of the class of the call in the tuning file; "": it has none
};
Decision decision_about(ibcoll_team_t team, SampleCall& call);

struct TimedAlgorithm {
  std::string name;
  uint64_t calls = 0;      // that were timed
  std::vector<double> us;  // of a call, one time for each repetition
};

// Calls in a row, and what the ranks agree upon between them.
class Stopwatch {
 public:
  // Collective. `team` outlives it.
  explicit Stopwatch(ibcoll_team_t team);
  ~Stopwatch();
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

  ibcoll_team_t own_team() const { return own_; }
  double largest(double mine) const;  // of all ranks
  // Microseconds that the slowest rank needs for one of `count` calls in a row.
  double us_of_a_call(ibcoll_request_t request, uint64_t count) const;
  static void run_once(ibcoll_request_t request);

 private:
  ibcoll_team_t own_ = nullptr;  // so that no call of it is one of those that are timed
};

struct TimingPlan {
  uint64_t repetitions = 20;
  double seconds = 0.05;     // for all repetitions of one algorithm
  double between_us = 0;     // that a call takes in addition, while it is not timed
  bool same_counts = false;  // all algorithms make as many calls as the slowest one
  // Times `count` calls and returns microseconds of one, the same on all ranks. `first`: the number of the first one.
  std::function<double(ibcoll_request_t request, uint64_t count, uint64_t first)> time;
};

// Times of these algorithms. One that is three times as slow as the best one is not repeated, unless it is `wanted`: the
// result does not have it.
std::vector<TimedAlgorithm> time_algorithms(ibcoll_team_t team, SampleCall& call, const std::vector<std::string>& names,
                                            const std::string& wanted, const TimingPlan& plan);

}  // namespace ibcoll
