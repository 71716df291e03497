// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/collectives/learning/learner.h"

#include <algorithm>

namespace ibcoll {
namespace {

constexpr uint64_t kFirstCalls = 2;  // calls before the first trial: they touch the program's memory for the first time
constexpr size_t kMostAtOnce = 8;    // candidates that the first round tries
constexpr size_t kMostLater = 5;     // and a later one
constexpr size_t kFinalists = 2;     // where the program calls in a row
constexpr size_t kFinalistsApart = 4;
constexpr uint64_t kPasses = 3;  // over the finalists, at most
constexpr uint64_t kPassesApart = 8;
constexpr size_t kMostRivals = 4;
constexpr int kMostApart = 4;     // of so many batches one in a row: the program calls in a row
constexpr int kDriftsInARow = 2;  // checks

float us(uint64_t ns) { return static_cast<float>(ns) / 1e3F; }

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
  for (const double cost : predicted_us) candidates_.push_back({.predicted_us = cost});
  plan_.reserve(kMostCalls);
  begin_learning();
}

void Learner::adopt(int candidate, uint64_t calls) {
  chosen_ = candidate;
  learned_from_ = calls;
  if (candidate > 0) rivals_ = {0};
  make_room_for_checks();
  freeze();
}

// ---------------------------------------------------------------- rounds

// `plan_` is filled; its first batch begins after so many calls.
void Learner::begin_round(uint64_t after) noexcept {
  ++round_;
  starts_.fill(0);
  ends_.fill(0);
  batch_ = call_of_batch_ = slot_ = 0;
  event_at_ = calls_ + 1 + after;
  decide_at_ = kNever;
}

Learner::Call Learner::event() noexcept {
  if (batch_ == plan_.size()) {
    event_at_ = kNever;
    decide_at_ = calls_ + kDelay * stride_;
    return {chosen_, Part::kUntimed, true};
  }
  const Batch& batch = plan_[batch_];
  const Part part = call_of_batch_ < batch.leads    ? Part::kLead
                    : call_of_batch_ == batch.leads ? Part::kFirst
                                                    : Part::kRow;
  Call call{batch.candidate, part};
  if (part >= Part::kFirst) call.slot = static_cast<uint8_t>(slot_++);
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

uint64_t Learner::plan_calls() const noexcept {
  uint64_t calls = 0;
  for (const Batch& batch : plan_) calls += batch.calls();
  return calls;
}

// Appends the round's times to those of its candidates. Ranks may leave a call at different times; the last ones to
// leave two calls in a row are as far apart as a call takes.
void Learner::read_round(const Times& merged) {
  int batches = 0, in_a_row = 0;
  const float* us = merged.data();
  for (const Batch& batch : plan_) {
    Candidate& candidate = candidates_[batch.candidate];
    candidate.tried = true;
    if (*us < kUnknown) candidate.first.push_back(*us);
    candidate.lowest = std::min(candidate.lowest, *us);
    const size_t before = candidate.row.size();
    for (const float* const last = us + batch.row_calls; us != last; ++us) {
      if (us[1] == kUnknown || us[1] <= us[0]) continue;
      candidate.row.push_back(us[1] - us[0]);
      candidate.lowest = std::min(candidate.lowest, us[1] - us[0]);
    }
    ++us;
    batches += batch.row_calls > 0 && candidate.first.size() > 0;
    in_a_row += candidate.row.size() > before;
  }
  // Few are enough: where ranks share cores, one that loses its core between two calls makes a gap.
  if (batches > 0) in_a_row_ = kMostApart * in_a_row >= batches;
  learned_from_ += plan_calls();
}

// ---------------------------------------------------------------- clocks

void Learner::began(uint32_t round, const Call& call, uint64_t now) noexcept {
  if (round == round_) starts_[call.slot] = now;
}

void Learner::ended(uint32_t round, const Call& call, uint64_t now) noexcept {
  if (round == round_) ends_[call.slot] = now;
}

Learner::Times Learner::times() const noexcept {
  Times times;
  times.fill(kUnknown);
  size_t first = 0;
  for (const Batch& batch : plan_) {
    for (size_t slot = first; slot <= first + batch.row_calls && ends_[slot] > 0; ++slot)
      if (slot == first || follows(first, slot)) times[slot] = us(ends_[slot] - starts_[first]);
    first += 1U + batch.row_calls;
  }
  return times;
}

// The gap before the call is short beside the calls of the batch so far, without the gaps between them: this call alone
// takes next to no time on the rank that comes last. Calls that overlap have no gap.
bool Learner::follows(size_t first, size_t slot) const noexcept {
  if (ends_[slot] <= ends_[slot - 1]) return false;
  uint64_t calls = ends_[first] - starts_[first];
  for (size_t i = first + 1; i <= slot; ++i) calls += ends_[i] - std::min(ends_[i], std::max(starts_[i], ends_[i - 1]));
  const float gap = starts_[slot] > ends_[slot - 1] ? us(starts_[slot] - ends_[slot - 1]) : 0;
  return gap <= std::max(kShortGapUs, kGaps * us(calls) / static_cast<float>(slot - first + 1));
}

// ---------------------------------------------------------------- trying

void Learner::begin_learning() {
  for (Candidate& candidate : candidates_) {
    candidate.tried = false;
    candidate.lowest = kUnknown;
    candidate.first.clear();
    candidate.row.clear();
  }
  learning_from_ = calls_ + 1;
  learned_from_ = 0;
  reference_us_ = 0;
  drifted_ = 0;
  in_a_row_ = true;
  stride_ = 1;
  plan_.clear();
  plan_new(kMostAtOnce, kFactor * candidates_[0].predicted_us);
  begin_round(kFirstCalls);
}

// Adds a trial of each candidate that was not tried and is predicted within the limit.
void Learner::plan_new(size_t most, double limit_us) {
  for (size_t i = 0; i < candidates_.size() && plan_.size() < most; ++i)
    if (!candidates_[i].tried && candidates_[i].predicted_us <= limit_us)
      plan_.push_back({static_cast<uint8_t>(i), 1, static_cast<uint8_t>(in_a_row_ ? 1 : 0)});
}

// A trial by which the decision is made.
Learner::Batch Learner::thorough(size_t candidate) const noexcept {
  if (!in_a_row_) return {static_cast<uint8_t>(candidate), 1, 0};
  return {static_cast<uint8_t>(candidate), kLeads, kRowCalls};
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

// By its median.
size_t Learner::fastest() const {
  size_t best = 0;
  for (size_t i = 1; i < candidates_.size(); ++i)
    if (median_of(i) < median_of(best)) best = i;
  return best;
}

// By a margin, and by more than the times of either of them scatter.
bool Learner::clearly_faster(size_t candidate, size_t than) const {
  const float us = median_of(candidate), others_us = median_of(than);
  return kMargin * us < others_us && us < quartile_of(than, 1) && quartile_of(candidate, 3) < others_us;
}

// The first prediction unless another candidate is clearly faster; where it was not measured, the lowest prediction
// that ties with the fastest one.
size_t Learner::decided() const {
  const size_t best = fastest();
  if (median_of(0) < kUnknown) return clearly_faster(best, 0) ? best : 0;
  size_t chosen = 0;
  while (median_of(chosen) > kTie * median_of(best)) ++chosen;
  return chosen;
}

// By how much predictions were wrong: how far apart the ratios of measured to predicted times are. Of one candidate,
// its own ratio.
double Learner::contradiction() const {
  double lowest = std::numeric_limits<double>::infinity(), highest = 0;
  int measured = 0;
  for (size_t i = 0; i < candidates_.size(); ++i) {
    const Candidate& candidate = candidates_[i];
    const double us = candidate.lowest;
    if (us == kUnknown || candidate.predicted_us <= 0) continue;
    const double ratio = us / candidate.predicted_us;
    lowest = std::min(lowest, ratio);
    highest = std::max(highest, ratio);
    ++measured;
  }
  if (measured == 0 || lowest <= 0) return 1;
  return measured > 1 ? highest / lowest : std::max(highest, 1 / lowest);
}

// The next round: candidates that the predictions put too far away, as far as they were seen to be wrong; when there
// are none, the finalists, which decide.
void Learner::plan_round() {
  if (finals_) return end_learning();
  const uint64_t used = calls_ + 1 - learning_from_ + kDelay;
  const uint64_t left = used < kMostCalls ? kMostCalls - used : 0;
  const double wrong = contradiction();
  plan_.clear();
  plan_new(kMostLater, kFactor * wrong * wrong * candidates_[0].predicted_us);
  while (plan_calls() > left) plan_.pop_back();
  if (plan_.empty()) plan_finals(left);
  if (!plan_.empty()) return begin_round(0);
  // No time for finals: the lowest time of each decides.
  for (Candidate& candidate : candidates_)
    if (candidate.lowest < kUnknown) candidate.row = candidate.first = {candidate.lowest};
  end_learning();
}

// The first prediction if it is within a factor of the fastest candidate, by their lowest times; then others that are
// close to it, in order.
std::vector<size_t> Learner::close_ones(double factor) const {
  std::vector<size_t> close;
  float best = kUnknown;
  for (const Candidate& candidate : candidates_) best = std::min(best, candidate.lowest);
  for (size_t i = 0; i < candidates_.size(); ++i) {
    const float limit = static_cast<float>(i == 0 ? factor : kClose) * best;
    if (candidates_[i].lowest < kUnknown && candidates_[i].lowest <= limit) close.push_back(i);
  }
  std::stable_sort(close.begin(), close.end(), [this](size_t a, size_t b) {
    return b != 0 && (a == 0 || candidates_[a].lowest < candidates_[b].lowest);
  });
  return close;
}

// They take turns. From now on only their times of these trials count. The first prediction is one of them whatever its
// short trial took: no single disturbance replaces it.
void Learner::plan_finals(uint64_t left) {
  std::vector<size_t> finalists = close_ones(std::numeric_limits<double>::infinity());
  finalists.resize(std::min(finalists.size(), in_a_row_ ? kFinalists : kFinalistsApart));
  if (finalists.size() < 2) return;
  const uint64_t pass = finalists.size() * thorough(0).calls();
  const uint64_t passes = std::min(in_a_row_ ? kPasses : kPassesApart, left / pass);
  if (passes == 0) return;
  for (Candidate& candidate : candidates_) candidate.first.clear(), candidate.row.clear();
  for (uint64_t i = 0; i < passes; ++i)
    for (const size_t one : finalists) plan_.push_back(thorough(one));
  finals_ = true;
}

void Learner::end_learning() {
  finals_ = false;
  chosen_ = static_cast<int>(decided());
  chosen_us_ = median_of(static_cast<size_t>(chosen_));
  rivals_.clear();
  for (const size_t one : close_ones(kFactor))
    if (static_cast<int>(one) != chosen_ && rivals_.size() < kMostRivals) rivals_.push_back(static_cast<uint8_t>(one));
  make_room_for_checks();
  freeze();
}

// ---------------------------------------------------------------- frozen

// So that checks allocate nothing.
void Learner::make_room_for_checks() {
  const auto make_room = [this](size_t candidate) {
    candidates_[candidate].first.reserve(kChecks);
    candidates_[candidate].row.reserve(kChecks * kRowCalls);
  };
  make_room(static_cast<size_t>(chosen_));
  for (const uint8_t rival : rivals_) make_room(rival);
}

void Learner::freeze() noexcept {
  plan_.clear();
  has_rival_ = !rivals_.empty();
  for (size_t i = 0; i < kChecks; ++i) {
    const auto candidate = static_cast<size_t>(has_rival_ && i % 2 == 1 ? rivals_.front() : chosen_);
    plan_.push_back(thorough(candidate));
  }
  stride_ = frozen_stride_;
  begin_round(stride_ - 1);
}

void Learner::check(const Times& merged) {
  const bool was_in_a_row = in_a_row_;
  const uint64_t learned_from = learned_from_;
  for (Candidate& candidate : candidates_) candidate.first.clear(), candidate.row.clear();
  read_round(merged);
  if (in_a_row_ != was_in_a_row) reference_us_ = 0, drifted_ = 0;
  if (has_rival_) {
    const size_t rival = rivals_.front(), chosen = static_cast<size_t>(chosen_);
    rivals_.erase(rivals_.begin());
    const bool stays = rival == 0 ? clearly_faster(chosen, 0) : !clearly_faster(rival, chosen);
    if (median_of(rival) < kUnknown && !stays) chosen_ = static_cast<int>(rival);
    if (median_of(static_cast<size_t>(chosen_)) < kUnknown) chosen_us_ = median_of(static_cast<size_t>(chosen_));
    return freeze();
  }
  learned_from_ = learned_from;
  const float us = median_of(static_cast<size_t>(chosen_));
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
