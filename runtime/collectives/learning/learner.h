// SPDX-License-Identifier: BSD-3-Clause
// Which algorithm the calls of one class get: tries candidates and decides by measured times. The decision is the same
// on all ranks, because it depends only on numbers of calls and on times that were merged over all ranks. No clock, no
// messages: the caller has both.
//
// A trial of a candidate is a batch of consecutive calls of the program:
//
//   leads  not timed: one may be the candidate's first call, and the caches hold what another algorithm used
//   first  starts behind a barrier and is timed from the end of the barrier
//   row    timed from the end of the call before, as far as the program leaves only short gaps between calls
//
// Trials come in rounds. First, each candidate gets a short one. The finalists, which are those with the lowest times
// and the first prediction, then take turns at trials that are long enough for warm caches, and these decide. The call
// after the last batch of a round starts the merge of all its times: the most of all ranks. The merge may take as long
// as kDelay more calls. After at most kMostCalls calls the choice is frozen.
//
// Of a frozen choice, one batch in `stride()` calls is timed; kChecks of them are merged. As long as there are rivals,
// every other batch is one of a rival, another one in each such round, and the decision between the two is made again:
// the trials of a few milliseconds may all have met the same disturbance. Later medians are compared with the first
// one. When they differ by kDrift or more twice in a row, the candidates are tried again, and the stride doubles.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace ibcoll {

class Learner {
 public:
  static constexpr int kMostCalls = 64;          // from the first trial to the last decision
  static constexpr uint64_t kDelay = 2;          // calls, or strides, from the start of a merge to its decision
  static constexpr double kFactor = 3;           // of the lowest predicted cost: candidates that are tried at first
  static constexpr double kClose = 1.5;          // of the lowest measured time: may be finalists and rivals
  static constexpr double kTie = 1.05;           // of the best measured time: the lower prediction wins
  static constexpr double kMargin = 1.1;         // by which a candidate must be faster to replace the first prediction
  static constexpr float kGaps = 0.25F;          // of the time of a call: after a longer gap a row call does not count
  static constexpr float kShortGapUs = 1;        // a gap that is not long in any case
  static constexpr size_t kChecks = 12;          // batches of a round once the choice is frozen
  static constexpr double kDrift = 2;            // up or down
  static constexpr uint64_t kFirstStride = 256;  // calls
  static constexpr uint64_t kLongestStride = uint64_t{1} << 16;
  static constexpr float kUnknown = std::numeric_limits<float>::infinity();  // no time

  enum class Part : uint8_t { kUntimed, kLead, kFirst, kRow };
  struct Call {
    int candidate = 0;
    Part part = Part::kUntimed;
    bool merge = false;  // the merge of times() begins before it
    uint8_t slot = 0;    // among the timed calls of the round, where it is one
  };
  // Microseconds, of each timed call of the round: from the end of the barrier of its batch to the end of the call.
  // kUnknown where it has not ended, behind long gaps, and behind the last call.
  using Times = std::array<float, kMostCalls>;

  // `predicted_us`: of each candidate, ascending, two or more.
  explicit Learner(std::vector<double> predicted_us);

  // The choice is known already, from `calls` calls of another job.
  void adopt(int candidate, uint64_t calls);

  // False: the next call needs the decision of the merge that has begun.
  bool ready() const noexcept { return calls_ + 1 != decide_at_; }
  // The next call, which is ready.
  Call next() noexcept {
    if (++calls_ != event_at_) return {chosen_};
    return event();
  }
  // A call of part kFirst or kRow on this rank, in nanoseconds: when it began (kFirst: after the barrier), and when it
  // ended. `round`: round() when it was started; times of an earlier one come too late.
  void began(uint32_t round, const Call& call, uint64_t now) noexcept;
  void ended(uint32_t round, const Call& call, uint64_t now) noexcept;
  uint32_t round() const noexcept { return round_; }
  // Of this rank.
  Times times() const noexcept;
  // The merge has ended: of each time, the most of all ranks. May throw std::bad_alloc unless the choice is frozen.
  void decide(const Times& merged);

  bool frozen() const noexcept { return stride_ > 1; }
  int chosen() const noexcept { return chosen_; }
  // Of the calls so far, those of batches by which the choice was made.
  uint64_t learned_from() const noexcept { return learned_from_; }
  // The time by which the choice was made, in microseconds; kUnknown: it was read, or no time is known.
  float chosen_us() const noexcept { return chosen_us_; }
  // The program calls in a row, so that row calls decide.
  bool in_a_row() const noexcept { return in_a_row_; }
  uint64_t calls() const noexcept { return calls_; }
  uint64_t stride() const noexcept { return stride_; }

 private:
  static constexpr uint64_t kNever = ~uint64_t{0};
  struct Candidate {
    double predicted_us;
    bool tried = false;
    float lowest = kUnknown;            // of all its times: what disturbs a call only makes it longer
    std::vector<float> first{}, row{};  // merged, those that count
  };
  struct Batch {
    uint8_t candidate = 0;
    uint8_t leads = 0;
    uint8_t row_calls = 0;
    uint8_t calls() const noexcept { return static_cast<uint8_t>(leads + 1 + row_calls); }
  };
  // Of a thorough batch: with the first call as many as the banks of a node window, which are cold at first.
  static constexpr uint8_t kLeads = 3;
  static constexpr uint8_t kRowCalls = 4;

  Call event() noexcept;
  void begin_round(uint64_t after) noexcept;
  void begin_learning();
  void plan_new(size_t most, double limit_us);
  Batch thorough(size_t candidate) const noexcept;
  uint64_t plan_calls() const noexcept;
  bool follows(size_t first, size_t slot) const noexcept;
  void read_round(const Times& merged);
  void plan_round();
  std::vector<size_t> close_ones(double factor) const;
  void plan_finals(uint64_t left);
  void end_learning();
  void make_room_for_checks();
  void freeze() noexcept;
  void check(const Times& merged);
  std::span<const float> times_of(size_t candidate) const noexcept;
  float median_of(size_t candidate) const { return quartile_of(candidate, 2); }
  float quartile_of(size_t candidate, size_t quartile) const;
  size_t fastest() const;
  bool clearly_faster(size_t candidate, size_t than) const;
  size_t decided() const;
  double contradiction() const;

  // What a call of a frozen choice looks at.
  uint64_t calls_ = 0;
  uint64_t event_at_ = 1;        // the number of the next call of a batch, or of the call that merges
  uint64_t decide_at_ = kNever;  // the number of the first call that needs the decision
  int chosen_ = 0;

  std::vector<Candidate> candidates_;
  std::vector<Batch> plan_;  // of the round
  std::vector<uint8_t> rivals_;
  std::array<uint64_t, kMostCalls> starts_{}, ends_{};  // of timed calls of the round on this rank, ns; 0: not yet
  uint64_t learning_from_ = 1;                          // the number of the first trial
  uint64_t stride_ = 1;  // calls from one batch to the next; 1: candidates are tried, one batch after the other
  uint64_t frozen_stride_ = kFirstStride;
  uint64_t learned_from_ = 0;
  uint32_t round_ = 0;
  uint32_t batch_ = 0;          // the one whose calls come next
  uint32_t call_of_batch_ = 0;  // and which of them
  uint32_t slot_ = 0;           // of the next timed call
  int drifted_ = 0;             // checks in a row
  bool in_a_row_ = true;
  bool finals_ = false;     // the round decides
  bool has_rival_ = false;  // the round of checks decides again, between the choice and rivals_.front()
  float chosen_us_ = kUnknown;
  float reference_us_ = 0;  // of the first check; 0: there was none
};

}  // namespace ibcoll
