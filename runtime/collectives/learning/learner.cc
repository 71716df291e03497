// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/collectives/learning/learner.h"

#include <algorithm>

namespace ibcoll {
namespace {

constexpr size_t kMostAtOnce = 8;  // candidates that a round tries for the first time
constexpr int kPasses = 2;         // over the close candidates, in a later round
constexpr size_t kEnough = 6;      // times of one candidate
constexpr uint8_t kRowCalls = 2;   // of a batch of a candidate that was tried before
constexpr int kDriftsInARow = 2;   // checks

// Where it lies between two, the lower one. Reorders the times.
float quartile_of_times(std::span<float> times, size_t quartile) {
  if (times.empty()) return Learner::kUnknown;
  const auto at = times.begin() + static_cast<std::ptrdiff_t>((times.size() - 1) * quartile / 4);
  std::nth_element(times.begin(), at, times.end());
  return *at;
}

}  // namespace

Learner::Learner(std::vector<double> predicted_us) {
  candidates_.reserve(predicted_us.size());
  for (const double us : predicted_us) candidates_.push_back({us, false, {}, {}});
  plan_.reserve(kMostBatches);
  begin_learning();
}

void Learner::adopt(int candidate, uint64_t calls) {
  chosen_ = candidate;
  learned_from_ = calls;
  freeze(candidate > 0 ? 0 : kNone);
}

// ---------------------------------------------------------------- rounds

// `plan_` is filled; its first batch begins with the next call, or after a stride.
void Learner::begin_round(uint64_t stride) noexcept {
  stride_ = stride;
  ++round_;
  clocks_.fill({});
  batch_ = call_of_batch_ = 0;
  event_at_ = calls_ + stride;
  decide_at_ = kNever;
}

Learner::Call Learner::event() noexcept {
  if (batch_ == plan_.size()) {
    event_at_ = kNever;
    decide_at_ = calls_ + kDelay * stride_;
    return {chosen_, Part::kUntimed, 0, true};
  }
  const Batch& batch = plan_[batch_];
  const uint32_t first = batch.has_lead ? 1 : 0;
  const Part part = call_of_batch_ < first ? Part::kLead : call_of_batch_ == first ? Part::kFirst : Part::kRow;
  const Call call{batch.candidate, part, static_cast<uint8_t>(batch_)};
  ++event_at_;
  if (++call_of_batch_ == batch.calls()) {
    if (frozen()) event_at_ = calls_ + 1 + stride_ - batch.calls();
    call_of_batch_ = 0;
    ++batch_;
  }
  return call;
}

void Learner::decide(const Times& merged) {
  if (frozen()) return check(merged);
  read_round(merged);
  plan_round();
}

// Appends a batch, where it may still be one of the round. `is_new`: of a candidate that was not tried.
void Learner::add_batch(size_t candidate, bool is_new) {
  if (plan_.size() == kMostBatches) return;
  const uint8_t row_calls = !in_a_row_ ? 0 : is_new ? 1 : kRowCalls;
  plan_.push_back({static_cast<uint8_t>(candidate), is_new || !in_a_row_, row_calls});
}

uint64_t Learner::plan_calls() const noexcept {
  uint64_t calls = 0;
  for (const Batch& batch : plan_) calls += batch.calls();
  return calls;
}

// Of one call, from what merged times say of the batch. Ranks may leave a call at different times, but the last one to leave
// the first call and the last one to leave the batch are as far apart as the row calls take.
float Learner::row_of(const Batch& batch, float first, float whole) noexcept {
  return batch.row_calls > 0 && whole < kUnknown && whole > first ? (whole - first) / batch.row_calls : kUnknown;
}

// Appends the round's times to those of its candidates.
void Learner::read_round(const Times& merged) {
  size_t with_row = 0, in_a_row = 0;
  for (size_t i = 0; i < plan_.size(); ++i) {
    const Batch& batch = plan_[i];
    const float first = merged[2 * i], row = row_of(batch, first, merged[2 * i + 1]);
    Candidate& candidate = candidates_[batch.candidate];
    candidate.tried = true;
    if (row < kUnknown) candidate.row.push_back(row);
    // Right behind another algorithm it is slower than it would be.
    if (first < kUnknown && (batch.has_lead || row == kUnknown)) candidate.first.push_back(first);
    with_row += batch.row_calls > 0 && first < kUnknown;
    in_a_row += row < kUnknown;
  }
  if (with_row > 0) in_a_row_ = 2 * in_a_row >= with_row;
  learned_from_ += plan_calls();
}

// ---------------------------------------------------------------- clocks

void Learner::began(uint32_t round, const Call& call, uint64_t now) noexcept {
  if (round != round_) return;
  Clock& clock = clocks_[call.batch];
  if (call.part == Part::kFirst)
    clock.began = now;
  else if (clock.ended > 0 && now > clock.last_ended)
    clock.gaps += now - clock.last_ended;
}

void Learner::ended(uint32_t round, const Call& call, uint64_t now) noexcept {
  if (round != round_) return;
  Clock& clock = clocks_[call.batch];
  if (call.part == Part::kFirst) clock.first_ended = now;
  clock.last_ended = std::max(clock.last_ended, now);
  ++clock.ended;
}

Learner::Times Learner::times() const noexcept {
  Times times;
  times.fill(kUnknown);
  for (size_t i = 0; i < plan_.size(); ++i) {
    const Clock& clock = clocks_[i];
    const uint8_t row_calls = plan_[i].row_calls;
    if (clock.first_ended == 0) continue;
    const auto us = [](uint64_t ns) { return static_cast<float>(ns) / 1e3F; };
    times[2 * i] = us(clock.first_ended - clock.began);
    if (clock.ended <= row_calls || row_calls == 0) continue;
    const float row = us(clock.last_ended - clock.first_ended), gaps = us(clock.gaps);
    if (gaps <= kGaps * (row - gaps)) times[2 * i + 1] = times[2 * i] + row - gaps;
  }
  return times;
}

// ---------------------------------------------------------------- trying

void Learner::begin_learning() {
  for (Candidate& candidate : candidates_) {
    candidate.tried = false;
    candidate.first.clear();
    candidate.row.clear();
  }
  learning_from_ = calls_ + 1;
  learned_from_ = 0;
  reference_us_ = 0;
  drifted_ = 0;
  in_a_row_ = true;
  plan_.clear();
  for (size_t i = 0; i < std::min(candidates_.size(), kMostAtOnce); ++i)
    if (candidates_[i].predicted_us <= kFactor * candidates_[0].predicted_us) add_batch(i, true);
  begin_round(1);
}

// By which the candidate is compared with others.
std::span<const float> Learner::times_of(size_t candidate) const noexcept {
  const Candidate& one = candidates_[candidate];
  return in_a_row_ && !one.row.empty() ? one.row : one.first;
}

float Learner::quartile_of(size_t candidate, size_t quartile) const {
  const std::span<const float> known = times_of(candidate);
  std::array<float, kMostCalls> times;
  std::copy(known.begin(), known.end(), times.begin());
  return quartile_of_times(std::span(times).first(known.size()), quartile);
}

// Of any call: what disturbs a call only makes it longer.
float Learner::lowest_of(size_t candidate) const noexcept {
  float lowest = kUnknown;
  for (const std::vector<float>* const times : {&candidates_[candidate].first, &candidates_[candidate].row})
    for (const float us : *times) lowest = std::min(lowest, us);
  return lowest;
}

// By its median.
size_t Learner::fastest() const {
  size_t best = 0;
  for (size_t i = 1; i < candidates_.size(); ++i)
    if (median_of(i) < median_of(best)) best = i;
  return best;
}

// The first prediction, unless another candidate is clearly faster: by a margin, and by more than times of the first
// prediction scatter. Of candidates that are clearly faster and tie, the lowest prediction.
size_t Learner::decided() const {
  const size_t best = fastest();
  const float best_us = median_of(best);
  if (median_of(0) <= kMargin * best_us || quartile_of(0, 1) <= best_us) return 0;
  size_t chosen = 1;
  while (median_of(chosen) > kTie * best_us) ++chosen;
  return chosen;
}

// By how much predictions were wrong: how far apart the ratios of measured to predicted times are. Of one candidate,
// its own ratio.
double Learner::contradiction() const {
  double lowest = std::numeric_limits<double>::infinity(), highest = 0;
  int measured = 0;
  for (size_t i = 0; i < candidates_.size(); ++i) {
    const Candidate& candidate = candidates_[i];
    const double us = lowest_of(i);
    if (us == kUnknown || candidate.predicted_us <= 0) continue;
    const double ratio = us / candidate.predicted_us;
    lowest = std::min(lowest, ratio);
    highest = std::max(highest, ratio);
    ++measured;
  }
  if (measured == 0 || lowest <= 0) return 1;
  return measured > 1 ? highest / lowest : std::max(highest, 1 / lowest);
}

// The next round: candidates that the predictions put too far away, as far as they were seen to be wrong, those that are
// close to the fastest one, and with them the first prediction, which none replaces by chance.
void Learner::plan_round() {
  const double best_us = median_of(fastest());
  chosen_ = static_cast<int>(decided());
  chosen_us_ = median_of(static_cast<size_t>(chosen_));
  const double wrong = contradiction();
  const double limit = kFactor * wrong * wrong * candidates_[0].predicted_us;
  std::vector<size_t> close;
  plan_.clear();
  for (size_t i = 0; i < candidates_.size(); ++i) {
    const Candidate& candidate = candidates_[i];
    if (!candidate.tried && candidate.predicted_us <= limit && plan_.size() < kMostAtOnce) add_batch(i, true);
    const bool is_close = lowest_of(i) <= (i == 0 ? kFactor : kClose) * best_us;
    if (candidate.tried && is_close && times_of(i).size() < kEnough) close.push_back(i);
  }
  if (close.size() > 1 || !plan_.empty())
    for (int pass = 0; pass < kPasses; ++pass)
      for (const size_t i : close) add_batch(i, false);
  const uint64_t used = calls_ + 1 - learning_from_ + kDelay;
  const uint64_t left = used < kMostCalls ? kMostCalls - used : 0;
  while (plan_calls() > left) plan_.pop_back();
  if (plan_.empty()) return freeze(closest_rival());
  begin_round(1);
}

// ---------------------------------------------------------------- frozen

// Of a choice that replaces the first prediction, that; of the first prediction, the fastest other one.
int Learner::closest_rival() const {
  if (chosen_us_ == kUnknown) return kNone;
  if (chosen_ > 0) return lowest_of(0) <= kFactor * chosen_us_ ? 0 : kNone;
  size_t rival = 1;
  for (size_t i = 2; i < candidates_.size(); ++i)
    if (median_of(i) < median_of(rival)) rival = i;
  return median_of(rival) <= kClose * chosen_us_ ? static_cast<int>(rival) : kNone;
}

void Learner::freeze(int rival) {
  plan_.clear();
  for (size_t i = 0; i < kChecks; ++i)
    add_batch(static_cast<size_t>(rival != kNone && i % 2 == 1 ? rival : chosen_), false);
  has_rival_ = rival != kNone;
  for (const Batch& batch : plan_) {  // so that the check allocates nothing
    candidates_[batch.candidate].first.reserve(kChecks);
    candidates_[batch.candidate].row.reserve(kChecks);
  }
  begin_round(frozen_stride_);
}

void Learner::check(const Times& merged) {
  const bool was_in_a_row = in_a_row_;
  const uint64_t learned_from = learned_from_;
  for (Candidate& candidate : candidates_) candidate.first.clear(), candidate.row.clear();
  read_round(merged);
  if (in_a_row_ != was_in_a_row) reference_us_ = 0, drifted_ = 0;
  if (has_rival_) {
    const bool measured = median_of(fastest()) < kUnknown;
    if (measured) chosen_ = static_cast<int>(decided()), chosen_us_ = median_of(static_cast<size_t>(chosen_));
    return freeze(kNone);
  }
  learned_from_ = learned_from;
  const float us = median_of(static_cast<size_t>(chosen_));
  if (us < kUnknown) {
    const bool drifts = reference_us_ > 0 && (us >= kDrift * reference_us_ || us * kDrift <= reference_us_);
    drifted_ = drifts ? drifted_ + 1 : 0;
    if (reference_us_ == 0) reference_us_ = us;
  }
  if (drifted_ < kDriftsInARow) return freeze(kNone);
  frozen_stride_ = std::min(2 * frozen_stride_, kLongestStride);
  begin_learning();
}

}  // namespace ibcoll
