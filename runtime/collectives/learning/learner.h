// SPDX-License-Identifier: BSD-3-Clause
// Which algorithm the calls of one shape get: tries candidates in the order of their predicted cost and decides by
// measured times. It is the same on all ranks, because it sees only numbers of calls and times that were merged over all
// ranks. No clock, no messages: the caller has both.
//
// Calls come in rounds. A round has trials, each of one candidate. The call after the last trial merges the times of
// all trials of the round: of each trial the longest time of all ranks, from when all had come. The merge may take as
// long as kDelay more calls; then it decides, and the next round begins, until one candidate is left or kMostCalls calls
// have been made. From then on the choice is frozen.
//
// Of a frozen choice, one call in `stride()` is timed. kChecks of them are merged and their median is compared with
// that of the first kChecks. When it differs by kDrift or more twice in a row, the candidates are tried again, and the
// stride doubles.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace ibcoll {

class Learner {
 public:
  static constexpr int kMostCalls = 64;  // from the first trial to the last decision
  static constexpr uint64_t kDelay = 2;  // calls, or strides, from the start of a merge to its decision
  static constexpr double kFactor = 3;   // of the lowest predicted cost: candidates that are tried at first
  static constexpr double kClose = 1.5;  // of the best measured time: tried again; all others are not
  static constexpr double kTie = 1.05;   // of the best measured time: the lower prediction wins, as it does where
                                         // the times of the best candidate scatter as far
  static constexpr int kChecks = 16;     // timed calls of a frozen choice
  static constexpr double kDrift = 2;    // up or down
  static constexpr uint64_t kFirstStride = 256;  // calls
  static constexpr uint64_t kLongestStride = uint64_t{1} << 16;
  static constexpr float kUnknown = std::numeric_limits<float>::infinity();  // no time

  // Of one call.
  struct Call {
    int candidate = 0;
    int slot = -1;       // it is timed, and this is its place among the times of the round; -1: it is not timed
    bool merge = false;  // the merge of times() begins before it
  };
  using Times = std::array<float, kMostCalls>;  // microseconds, by slot

  // `predicted_us`: of each candidate, ascending, two or more.
  explicit Learner(std::vector<double> predicted_us);

  // The choice is known already, from `calls` calls of another job.
  void adopt(int candidate, uint64_t calls) noexcept;

  // False: the next call needs the decision of the merge that has begun.
  bool ready() const noexcept { return calls_ + 1 != decide_at_; }
  // The next call, which is ready.
  Call next() noexcept {
    if (++calls_ != event_at_) return {chosen_};
    return event();
  }
  // A timed call has ended on this rank. `round`: round() when it began; times of an earlier one come too late.
  void ended(uint32_t round, int slot, double us) noexcept {
    if (round == round_) times_[static_cast<size_t>(slot)] = static_cast<float>(us);
  }
  uint32_t round() const noexcept { return round_; }
  // Of this rank; kUnknown where the call has not ended, and behind the last slot.
  const Times& times() const noexcept { return times_; }
  // The merge has ended: of each slot, the most of all ranks. May throw std::bad_alloc unless the choice is frozen.
  void decide(const Times& merged);

  bool frozen() const noexcept { return stride_ > 1; }
  int chosen() const noexcept { return chosen_; }
  // Of the calls so far, those that were timed to find the choice.
  uint64_t learned_from() const noexcept { return learned_from_; }
  // The time by which the choice was made, in microseconds; kUnknown: it was read, or no time is known.
  float chosen_us() const noexcept { return chosen_us_; }
  uint64_t calls() const noexcept { return calls_; }
  uint64_t stride() const noexcept { return stride_; }

 private:
  static constexpr uint64_t kNever = ~uint64_t{0};
  struct Candidate {
    double predicted_us;
    bool tried = false;
    std::vector<float> times;  // merged
  };

  Call event() noexcept;
  void begin_round(uint64_t stride) noexcept;
  void begin_learning();
  void plan_round();
  void freeze() noexcept;
  void check(const Times& merged);
  float median_of(size_t candidate) const { return quartile_of(candidate, 2); }
  float quartile_of(size_t candidate, size_t quartile) const;
  size_t fastest() const;
  size_t decided() const;
  double contradiction() const;

  std::vector<Candidate> candidates_;
  std::vector<int> plan_;  // the candidates of the trials of the round
  Times times_;
  uint64_t calls_ = 0;
  uint64_t event_at_ = 1;        // the number of the next trial, or of the call that merges
  uint64_t decide_at_ = kNever;  // the number of the first call that needs the decision
  uint64_t began_at_ = 1;        // the number of the first call of the round
  uint64_t learning_from_ = 1;   // the number of the first trial
  uint64_t stride_ = 1;          // calls from one timed call to the next; 1: candidates are tried
  uint64_t frozen_stride_ = kFirstStride;
  uint64_t learned_from_ = 0;
  uint32_t round_ = 0;
  int chosen_ = 0;
  int drifted_ = 0;  // checks in a row
  float chosen_us_ = kUnknown;
  float reference_us_ = 0;  // of the first check; 0: there was none
};

}  // namespace ibcoll
