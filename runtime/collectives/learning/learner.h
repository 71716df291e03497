// SPDX-License-Identifier: BSD-3-Clause
// Which algorithm the calls of one class get: tries candidates and decides by measured times. The decision is the same on
// all ranks, because it depends only on numbers of calls and on times that were merged over all ranks. No clock, no
// messages: the caller has both.
//
// A trial of a candidate is a batch of consecutive calls of the program:
//
//   lead   not timed: it may be the candidate's first call, and the caches hold what another algorithm used
//   first  starts behind a barrier and is timed from the end of the barrier
//   row    timed from the end of the call before it, as far as the program leaves only short gaps between calls
//
// Trials come in rounds. In the first round each candidate gets one batch of lead, first and one row call. In later rounds,
// candidates that are close to the fastest one take turns: first and two row calls where the program calls in a row, else
// lead and first. The call after the last batch of a round starts the merge of all its times: the most of all ranks. The
// merge may take as long as kDelay more calls; then it decides, and the next round begins, until one candidate is left or
// kMostCalls calls have been made. From then on the choice is frozen.
//
// Of a frozen choice, one batch in `stride()` calls is timed; kChecks of them are merged. In the first such round every
// other batch is one of the closest rival, and the decision is made again: the trials of a few milliseconds may all have
// met the same disturbance. Later medians are compared with the first one. When they differ by kDrift or more twice in a
// row, the candidates are tried again, and the stride doubles.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace ibcoll {

class Learner {
 public:
  static constexpr int kMostCalls = 64;   // from the first trial to the last decision
  static constexpr uint64_t kDelay = 2;   // calls, or strides, from the start of a merge to its decision
  static constexpr double kFactor = 3;    // of the lowest predicted cost: candidates that are tried at first
  static constexpr double kClose = 1.5;   // of the best measured time: tried again; all others are not
  static constexpr double kTie = 1.05;    // of the best measured time: the lower prediction wins
  static constexpr double kMargin = 1.1;  // by which a candidate must be faster to replace the first prediction
  static constexpr float kGaps = 0.25F;   // of the time of row calls: longer gaps between them, and they do not count
  static constexpr size_t kMostBatches = 32;     // of a round
  static constexpr size_t kChecks = 16;          // batches of a round once the choice is frozen
  static constexpr double kDrift = 2;            // up or down
  static constexpr uint64_t kFirstStride = 256;  // calls
  static constexpr uint64_t kLongestStride = uint64_t{1} << 16;
  static constexpr float kUnknown = std::numeric_limits<float>::infinity();  // no time

  enum class Part : uint8_t { kUntimed, kLead, kFirst, kRow };
  struct Call {
    int candidate = 0;
    Part part = Part::kUntimed;
    uint8_t batch = 0;   // of the round, unless it is untimed
    bool merge = false;  // the merge of times() begins before it
  };
  // Microseconds, of each batch: of the first call, then of the first call and the row calls together. kUnknown where
  // calls have not ended or gaps between row calls are long, and behind the last batch.
  using Times = std::array<float, 2 * kMostBatches>;

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
  static constexpr int kNone = -1;
  struct Candidate {
    double predicted_us;
    bool tried = false;
    std::vector<float> first, row;  // merged
  };
  struct Batch {
    uint8_t candidate = 0;
    bool has_lead = false;
    uint8_t row_calls = 0;
    uint8_t calls() const noexcept { return static_cast<uint8_t>(has_lead + 1 + row_calls); }
  };
  struct Clock {  // of a batch on this rank, ns
    uint64_t began = 0, first_ended = 0, last_ended = 0, gaps = 0;
    uint8_t ended = 0;  // timed calls
  };

  Call event() noexcept;
  void begin_round(uint64_t stride) noexcept;
  void begin_learning();
  void add_batch(size_t candidate, bool is_new);
  uint64_t plan_calls() const noexcept;
  static float row_of(const Batch& batch, float first, float whole) noexcept;
  void read_round(const Times& merged);
  void plan_round();
  void freeze(int rival);
  void check(const Times& merged);
  std::span<const float> times_of(size_t candidate) const noexcept;
  float median_of(size_t candidate) const { return quartile_of(candidate, 2); }
  float quartile_of(size_t candidate, size_t quartile) const;
  float lowest_of(size_t candidate) const noexcept;
  size_t fastest() const;
  size_t decided() const;
  int closest_rival() const;
  double contradiction() const;

  // What a call of a frozen choice looks at.
  uint64_t calls_ = 0;
  uint64_t event_at_ = 1;        // the number of the next call of a batch, or of the call that merges
  uint64_t decide_at_ = kNever;  // the number of the first call that needs the decision
  int chosen_ = 0;

  std::vector<Candidate> candidates_;
  std::vector<Batch> plan_;  // of the round
  std::array<Clock, kMostBatches> clocks_;
  uint64_t learning_from_ = 1;  // the number of the first trial
  uint64_t stride_ = 1;         // calls from one batch to the next; 1: candidates are tried, one batch after the other
  uint64_t frozen_stride_ = kFirstStride;
  uint64_t learned_from_ = 0;
  uint32_t round_ = 0;
  uint32_t batch_ = 0;          // the one whose calls come next
  uint32_t call_of_batch_ = 0;  // and which of them
  int drifted_ = 0;             // checks in a row
  bool in_a_row_ = true;
  bool has_rival_ = false;  // the round of checks decides again
  float chosen_us_ = kUnknown;
  float reference_us_ = 0;  // of the first check; 0: there was none
};

}  // namespace ibcoll
