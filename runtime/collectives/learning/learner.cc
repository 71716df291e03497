// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/collectives/learning/learner.h"

#include <algorithm>

namespace ibcoll {
namespace {

constexpr int kFirstTrials = 3;    // of each candidate in the first round; later, of those that are close
constexpr int kLaterTrials = 2;    // of a candidate that a later round adds
constexpr size_t kMostAtOnce = 8;  // candidates that a round tries for the first time
constexpr size_t kEnough = 8;      // trials of one candidate
constexpr int kDriftsInARow = 2;   // checks

// The lower one of the two that it lies between: the first call of an algorithm also prepares it. Reorders the times.
float quartile_of_times(std::span<float> times, size_t quartile) {
  if (times.empty()) return Learner::kUnknown;
  const auto at = times.begin() + static_cast<std::ptrdiff_t>((times.size() - 1) * quartile / 4);
  std::nth_element(times.begin(), at, times.end());
  return *at;
}

// The known times of the first `count` slots.
std::span<float> known_times(Learner::Times& times, size_t count) {
  const auto end = std::remove(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(count), Learner::kUnknown);
  return {times.begin(), end};
}

}  // namespace

Learner::Learner(std::vector<double> predicted_us) {
  candidates_.reserve(predicted_us.size());
  for (const double us : predicted_us) candidates_.push_back({us, false, {}});
  plan_.reserve(kMostCalls);
  begin_learning();
}

void Learner::adopt(int candidate, uint64_t calls) noexcept {
  chosen_ = candidate;
  learned_from_ = calls;
  freeze();
}

// ---------------------------------------------------------------- rounds

// `plan_` is filled; the next call is its first.
void Learner::begin_round(uint64_t stride) noexcept {
  stride_ = stride;
  ++round_;
  times_.fill(kUnknown);
  began_at_ = calls_ + 1;
  event_at_ = calls_ + stride;
  decide_at_ = kNever;
}

Learner::Call Learner::event() noexcept {
  const auto slot = static_cast<size_t>((calls_ - began_at_) / stride_);
  if (slot < plan_.size()) {
    event_at_ += stride_;
    return {plan_[slot], static_cast<int>(slot)};
  }
  event_at_ = kNever;
  decide_at_ = calls_ + kDelay * stride_;
  return {chosen_, -1, true};
}

void Learner::decide(const Times& merged) {
  if (frozen()) return check(merged);
  for (size_t slot = 0; slot < plan_.size(); ++slot) {
    Candidate& candidate = candidates_[static_cast<size_t>(plan_[slot])];
    candidate.tried = true;
    if (merged[slot] < kUnknown) candidate.times.push_back(merged[slot]);
  }
  learned_from_ += plan_.size();
  plan_round();
}

// ---------------------------------------------------------------- trying

void Learner::begin_learning() {
  for (Candidate& candidate : candidates_) candidate.tried = false, candidate.times.clear();
  learning_from_ = calls_ + 1;
  learned_from_ = 0;
  reference_us_ = 0;
  drifted_ = 0;
  plan_.clear();
  size_t count = 0;
  while (count < std::min(candidates_.size(), kMostAtOnce) &&
         candidates_[count].predicted_us <= kFactor * candidates_[0].predicted_us)
    ++count;
  // One after the other, so that what changes with time is the same for all.
  for (int trial = 0; trial < kFirstTrials; ++trial)
    for (size_t i = 0; i < count; ++i) plan_.push_back(static_cast<int>(i));
  begin_round(1);
}

float Learner::quartile_of(size_t candidate, size_t quartile) const {
  const std::vector<float>& known = candidates_[candidate].times;
  std::array<float, kMostCalls> times;
  std::copy(known.begin(), known.end(), times.begin());
  return quartile_of_times(std::span(times).first(known.size()), quartile);
}

// By its median.
size_t Learner::fastest() const {
  size_t best = 0;
  for (size_t i = 1; i < candidates_.size(); ++i)
    if (median_of(i) < median_of(best)) best = i;
  return best;
}

// The lowest prediction of those that are not clearly slower than the fastest one.
size_t Learner::decided() const {
  const size_t best = fastest();
  const double limit = std::max<double>(kTie * median_of(best), quartile_of(best, 3));
  size_t chosen = 0;
  while (chosen != best && median_of(chosen) > limit) ++chosen;
  return chosen;
}

// By how much predictions were wrong: how far apart the ratios of measured to predicted times are. Of one candidate,
// its own ratio.
double Learner::contradiction() const {
  double lowest = std::numeric_limits<double>::infinity(), highest = 0;
  int measured = 0;
  for (size_t i = 0; i < candidates_.size(); ++i) {
    const Candidate& candidate = candidates_[i];
    const double us = median_of(i);
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
  const uint64_t used = calls_ + 1 - learning_from_ + kDelay;
  const size_t left = used < kMostCalls ? kMostCalls - used : 0;
  const double wrong = contradiction();
  const double limit = kFactor * wrong * wrong * candidates_[0].predicted_us;
  std::vector<int> added, close;
  for (size_t i = 0; i < candidates_.size(); ++i) {
    const Candidate& candidate = candidates_[i];
    if (!candidate.tried && candidate.predicted_us <= limit && added.size() < kMostAtOnce)
      added.push_back(static_cast<int>(i));
    const bool is_close = median_of(i) <= (i == 0 ? kFactor : kClose) * best_us;
    if (candidate.tried && is_close && candidate.times.size() < kEnough) close.push_back(static_cast<int>(i));
  }
  plan_.clear();
  if (added.empty() && close.size() < 2) return freeze();
  for (int trial = 0; trial < kFirstTrials; ++trial) {
    if (trial < kLaterTrials) plan_.insert(plan_.end(), added.begin(), added.end());
    plan_.insert(plan_.end(), close.begin(), close.end());
  }
  plan_.resize(std::min(plan_.size(), left));
  if (plan_.empty()) return freeze();
  begin_round(1);
}

// ---------------------------------------------------------------- frozen

void Learner::freeze() noexcept {
  plan_.assign(kChecks, chosen_);  // there is room
  begin_round(frozen_stride_);
}

void Learner::check(const Times& merged) {
  Times times = merged;
  const float us = quartile_of_times(known_times(times, kChecks), 2);
  if (us < kUnknown) {
    const bool drifts = reference_us_ > 0 && (us >= kDrift * reference_us_ || us * kDrift <= reference_us_);
    drifted_ = drifts ? drifted_ + 1 : 0;
    if (reference_us_ == 0) reference_us_ = us;
  }
  if (drifted_ < kDriftsInARow) return freeze();
  frozen_stride_ = std::min(2 * frozen_stride_, kLongestStride);
  begin_learning();
}

}  // namespace ibcoll
