// SPDX-License-Identifier: BSD-3-Clause
// What a Learner tries and chooses, from times that stand in the test.
#include "runtime/collectives/learning/learner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "runtime/collectives/learning/call_class.h"
#include "runtime/sim/random.h"

namespace ibcoll {
namespace {

using TimeOf = std::function<double(int rank, int candidate)>;  // of the call that is running, in microseconds

// The ranks of a team, each with a learner of its own. A merge ends when a rank needs its result. A call starts when
// the slowest rank has ended the one before, `gap` microseconds later, and ranks end it at times of their own.
struct LearningTeam {
  LearningTeam(int ranks, const std::vector<double>& predicted)
      : learners(static_cast<size_t>(ranks), Learner(predicted)), left(static_cast<size_t>(ranks)) {}

  // One call on all ranks; returns the candidate that ran.
  int call(const TimeOf& time_of) {
    if (!learners[0].ready())
      for (Learner& learner : learners) learner.decide(merged);
    std::vector<Learner::Call> calls;
    for (Learner& learner : learners) {
      EXPECT_TRUE(learner.ready());
      calls.push_back(learner.next());
      EXPECT_EQ(calls.back().candidate, calls[0].candidate) << "ranks choose alike";
      EXPECT_EQ(calls.back().merge, calls[0].merge);
      EXPECT_EQ(calls.back().part, calls[0].part);
      EXPECT_EQ(calls.back().slot, calls[0].slot);
    }
    if (calls[0].merge) merge();
    const double start = now;
    for (size_t rank = 0; rank < learners.size(); ++rank) {
      const uint32_t round = learners[rank].round();
      const bool timed = calls[rank].part >= Learner::Part::kFirst;
      const bool first = calls[rank].part == Learner::Part::kFirst;  // behind a barrier
      if (timed) learners[rank].began(round, calls[rank], ns(first ? start : left[rank] + gap));
      left[rank] = start + gap + time_of(static_cast<int>(rank), calls[rank].candidate);
      if (timed) learners[rank].ended(round, calls[rank], ns(first ? left[rank] - gap : left[rank]));
      if (first) left[rank] -= gap;
      now = std::max(now, left[rank]);
    }
    return calls[0].candidate;
  }
  void merge() {
    merged.fill(0);
    for (const Learner& learner : learners)
      for (size_t i = 0; i < merged.size(); ++i) merged[i] = std::max(merged[i], learner.times()[i]);
  }
  // Calls until the choice is frozen; at most `most`. The calls that each candidate got.
  std::vector<int> learn(const TimeOf& time_of, int most = Learner::kMostCalls) {
    std::vector<int> tried(32, 0);
    calls = 0;
    while (calls < most && !frozen()) {
      ++tried[static_cast<size_t>(call(time_of))];
      ++calls;
    }
    return tried;
  }
  // A decision that is due counts.
  bool frozen() {
    if (!learners[0].ready())
      for (Learner& learner : learners) learner.decide(merged);
    return learners[0].frozen();
  }

  static uint64_t ns(double us) { return static_cast<uint64_t>(us * 1000); }

  std::vector<Learner> learners;
  std::vector<double> left;  // when each rank ended its last call
  double now = 1;
  double gap = 0;
  Learner::Times merged{};
  int calls = 0;
};

TimeOf times(std::vector<double> us) {
  return [us = std::move(us)](int, int candidate) { return us[static_cast<size_t>(candidate)]; };
}

TEST(Learner, TakesTheFastestOfThoseWithinTheFactor) {
  LearningTeam team(2, {10, 20, 29});
  team.learn(times({25, 40, 12}));
  EXPECT_TRUE(team.frozen());
  EXPECT_EQ(team.learners[0].chosen(), 2);
  EXPECT_EQ(team.call(times({25, 40, 12})), 2);
  EXPECT_FLOAT_EQ(team.learners[0].chosen_us(), 12);
}

TEST(Learner, DoesNotTryWhatIsPredictedBeyondTheFactorWhilePredictionsHold) {
  LearningTeam team(2, {10, 20, 300});
  const std::vector<int> tried = team.learn(times({10, 20, 1}));
  EXPECT_EQ(tried[2], 0);
  EXPECT_EQ(team.learners[0].chosen(), 0);
}

TEST(Learner, TriesMoreWhereMeasuredTimesContradictThePredictions) {
  LearningTeam team(2, {10, 20, 80});
  const std::vector<int> tried = team.learn(times({40, 20, 15}));
  EXPECT_GT(tried[2], 0);
  EXPECT_EQ(team.learners[0].chosen(), 2);
}

TEST(Learner, DoesNotTryAgainWhatIsFarFromTheBest) {
  LearningTeam team(2, {10, 20, 25});
  const std::vector<int> tried = team.learn(times({10, 12, 31}));
  EXPECT_GT(tried[1], 3);
  EXPECT_EQ(tried[2], 3);
}

TEST(Learner, LeavesTiesToThePrediction) {
  LearningTeam team(2, {10, 11});
  team.learn(times({10, 9.2}));
  EXPECT_EQ(team.learners[0].chosen(), 0);
  LearningTeam other(2, {10, 11});
  other.learn(times({10, 9.0}));
  EXPECT_EQ(other.learners[0].chosen(), 1);
}

// The rank that comes last finds its part done, so its own call is about as short as the gap before it.
TEST(Learner, AShortCallOfTheLastRankIsNoGap) {
  LearningTeam team(2, {10, 11});
  team.gap = 1.5;
  int calls = 0;
  team.learn([&](int rank, int) { return (calls += rank == 0) % 2 == rank ? 30.0 : 3.0; });
  EXPECT_TRUE(team.frozen());
  EXPECT_TRUE(team.learners[0].in_a_row());
}

// The gap before a call is judged beside calls alone, not beside longer gaps that came before.
TEST(Learner, ALongGapIsNoTimeOfCalls) {
  LearningTeam team(1, {10, 11});
  for (int call = 0; call < Learner::kMostCalls && !team.frozen(); ++call) {
    // The first trials are in a row. Then a call takes a tenth of a gap, and a thousandth of every fifth one.
    team.gap = call < 10 ? 0 : call % 5 == 0 ? 10'000 : 100;
    team.call(times({10, 11}));
  }
  ASSERT_TRUE(team.frozen());
  EXPECT_FALSE(team.learners[0].in_a_row());
}

TEST(Learner, MediansDecide) {
  LearningTeam team(1, {10, 11});
  int calls = 0;
  // Every fifth call is disturbed.
  team.learn([&](int, int candidate) {
    ++calls;
    return (candidate == 1 ? 8.0 : 10.0) * (calls % 5 == 0 ? 7 : 1);
  });
  EXPECT_EQ(team.learners[0].chosen(), 1);
}

// Where times scatter more than the candidates differ, a lower median is chance.
TEST(Learner, WhereTimesScatterThePredictionStays) {
  int replaced = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    sim::Random random(seed);
    LearningTeam team(1, {10, 11, 12});
    team.learn([&](int, int) { return 10.0 * static_cast<double>(1 + random.below(20)); });
    replaced += team.learners[0].chosen() != 0;
  }
  EXPECT_LT(replaced, 20);  // of the three, each is as fast as the others
}

TEST(Learner, TheLongestTimeOfAllRanksCounts) {
  sim::Random random(7);
  LearningTeam team(5, {10, 11, 12});
  size_t last = 0;
  team.learn([&](int rank, int candidate) {
    if (rank == 0) last = random.below(5);
    const double us = std::vector<double>{14, 12, 9}[static_cast<size_t>(candidate)];
    return rank == static_cast<int>(last) ? us : us * static_cast<double>(random.below(100)) / 100;
  });
  EXPECT_EQ(team.learners[0].chosen(), 2);
  EXPECT_FLOAT_EQ(team.learners[0].chosen_us(), 9);
}

TEST(Learner, ACallThatHasNotEndedOnARankSaysNothing) {
  Learner learner({10, 11});
  Learner::Times merged;
  merged.fill(Learner::kUnknown);
  merged[2] = 5, merged[3] = 9;  // of the second candidate only
  while (learner.ready()) (void)learner.next();
  learner.decide(merged);
  EXPECT_EQ(learner.chosen(), 1);
}

TEST(Learner, WithoutAnyTimeThePredictionStays) {
  Learner learner({10, 11});
  Learner::Times merged;
  merged.fill(Learner::kUnknown);
  int calls = 0;
  while (!learner.frozen() && calls < 1000) {
    if (!learner.ready()) learner.decide(merged);
    if (learner.frozen()) break;
    (void)learner.next();
    ++calls;
  }
  EXPECT_LE(calls, Learner::kMostCalls);
  EXPECT_EQ(learner.chosen(), 0);
}

TEST(Learner, TimesOfAnEarlierRoundComeTooLate) {
  Learner learner({10, 11});
  const uint32_t round = learner.round();
  Learner::Times merged;
  merged.fill(1);
  while (learner.round() == round) {
    if (learner.ready())
      (void)learner.next();
    else
      learner.decide(merged);
  }
  const Learner::Call late{0, Learner::Part::kFirst};
  learner.began(round, late, 1000);
  learner.ended(round, late, 2000);
  EXPECT_EQ(learner.times()[0], Learner::kUnknown);
}

// The calls of each part that a candidate gets before the choice is frozen.
std::vector<Learner::Part> parts_of(LearningTeam& team, int candidate, const TimeOf& time_of) {
  std::vector<Learner::Part> parts;
  Learner watched = team.learners[0];
  while (!team.frozen()) {
    if (!watched.ready()) watched.decide(team.merged);
    const Learner::Call call = watched.next();
    if (call.candidate == candidate && call.part != Learner::Part::kUntimed) parts.push_back(call.part);
    team.call(time_of);
  }
  return parts;
}

TEST(Learner, TheFirstCallOfACandidateIsNotTimed) {
  LearningTeam team(2, {10, 11, 25});
  const std::vector<Learner::Part> parts = parts_of(team, 2, times({10, 11, 50}));
  EXPECT_EQ(parts, (std::vector{Learner::Part::kLead, Learner::Part::kFirst, Learner::Part::kRow}));
}

// A candidate that is slow behind a barrier, where its pipeline is empty, and fast in a row.
TEST(Learner, CallsInARowDecideWhereTheProgramCallsInARow) {
  for (const double gap : {0.0, 1.0, 20.0}) {
    LearningTeam team(2, {10, 11});
    Learner watched = team.learners[0];
    team.gap = gap;
    while (!team.frozen()) {
      if (!watched.ready()) watched.decide(team.merged);
      const bool in_a_row = watched.next().part == Learner::Part::kRow;
      team.call([=](int, int candidate) { return candidate == 0 ? 10 : in_a_row ? 5 : 15; });
    }
    EXPECT_EQ(team.learners[0].in_a_row(), gap < 10) << gap;
    EXPECT_EQ(team.learners[0].chosen(), gap < 10) << gap;
    if (gap < 10) {
      EXPECT_NEAR(team.learners[0].chosen_us(), 5 + gap, 0.01);
    }
  }
}

// Calls that overlap have no gaps between them.
TEST(Learner, CallsMayStartBeforeTheOneBeforeHasEnded) {
  Learner learner({10, 11});
  const Learner::Call first{0, Learner::Part::kFirst, false, 0}, row{0, Learner::Part::kRow, false, 1};
  learner.began(learner.round(), first, 1'000);
  learner.began(learner.round(), row, 2'000);
  learner.ended(learner.round(), first, 11'000);
  EXPECT_EQ(learner.times()[1], Learner::kUnknown) << "the second call has not ended";
  learner.ended(learner.round(), row, 15'000);
  EXPECT_FLOAT_EQ(learner.times()[0], 10);
  EXPECT_FLOAT_EQ(learner.times()[1], 14);
}

TEST(Learner, OfAFrozenChoiceOneBatchOfAStrideIsTimed) {
  LearningTeam team(1, {10, 100});
  team.learn(times({10, 100}));
  uint64_t batches = 0;
  for (uint64_t i = 0; i < Learner::kFirstStride * (Learner::kChecks + 1); ++i) {
    ASSERT_TRUE(team.learners[0].ready());
    const Learner::Call call = team.learners[0].next();
    EXPECT_EQ(call.candidate, 0) << "a rival that is far slower is not tried again";
    batches += call.part == Learner::Part::kFirst;
  }
  EXPECT_EQ(batches, Learner::kChecks);
}

constexpr uint64_t kCheckCalls = Learner::kFirstStride * (Learner::kChecks + Learner::kDelay + 1);

// A disturbance that lasts as long as all trials, and makes the first prediction slow, does not last.
TEST(Learner, TheFirstCheckDecidesAgain) {
  LearningTeam team(2, {10, 12});
  team.learn(times({18, 12}));
  ASSERT_EQ(team.learners[0].chosen(), 1);
  std::set<int> tried;
  for (uint64_t i = 0; i < kCheckCalls; ++i) tried.insert(team.call(times({9, 12})));
  EXPECT_EQ(tried, (std::set{0, 1}));
  EXPECT_EQ(team.learners[0].chosen(), 0);
  EXPECT_FLOAT_EQ(team.learners[0].chosen_us(), 9);
  for (uint64_t i = 0; i < kCheckCalls; ++i) EXPECT_EQ(team.call(times({9, 12})), 0);
}

TEST(Learner, TheFirstCheckMayReplaceThePrediction) {
  LearningTeam team(2, {10, 11});
  team.learn(times({10, 12}));
  ASSERT_EQ(team.learners[0].chosen(), 0);
  for (uint64_t i = 0; i < kCheckCalls; ++i) team.call(times({10, 8}));
  EXPECT_EQ(team.learners[0].chosen(), 1);
}

TEST(Learner, LooksAgainWhenTimesDriftForLong) {
  LearningTeam team(2, {10, 12});
  team.learn(times({10, 20}));
  ASSERT_EQ(team.learners[0].chosen(), 0);
  for (uint64_t i = 0; i < 2 * kCheckCalls; ++i) team.call(times({10, 20}));
  EXPECT_TRUE(team.frozen());
  for (uint64_t i = 0; i < kCheckCalls; ++i) team.call(times({30, 12}));
  for (uint64_t i = 0; i < kCheckCalls; ++i) team.call(times({10, 20}));
  EXPECT_TRUE(team.frozen()) << "one check is not long";
  bool opened = false;
  for (uint64_t i = 0; i < 4 * kCheckCalls; ++i) {
    team.call(times({30, 12}));
    opened = opened || !team.frozen();
  }
  EXPECT_TRUE(opened);
  EXPECT_EQ(team.learners[0].chosen(), 1);
  EXPECT_EQ(team.learners[0].stride(), 2 * Learner::kFirstStride);
}

TEST(Learner, AdoptsAChoice) {
  Learner learner({10, 12});
  learner.adopt(1, 40);
  EXPECT_TRUE(learner.frozen());
  EXPECT_EQ(learner.next().candidate, 1);
  EXPECT_EQ(learner.learned_from(), 40u);
}

// A choice of an earlier job is compared with the first prediction once more.
TEST(Learner, AnAdoptedChoiceIsChecked) {
  for (const double us : {5.0, 15.0}) {
    LearningTeam team(2, {10, 12});
    for (Learner& learner : team.learners) learner.adopt(1, 40);
    for (uint64_t i = 0; i < kCheckCalls; ++i) team.call(times({10, us}));
    EXPECT_EQ(team.learners[0].chosen(), us < 10) << us;
  }
}

// Any predictions, any times, and every seventh call of a candidate disturbed: the choice is frozen within
// kMostCalls calls and is the fastest of those that were tried, which are at least those within the factor.
TEST(LearnerProperty, ChoosesTheFastestOfThoseThatItTried) {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    sim::Random random(seed);
    const auto factor = [&](double most) {
      return std::exp2((static_cast<double>(random.below(2001)) / 1000 - 1) * std::log2(most));
    };
    const size_t count = 2 + random.below(12);
    std::vector<double> predicted, real;
    for (size_t i = 0; i < count; ++i) predicted.push_back(10 * factor(8));
    std::sort(predicted.begin(), predicted.end());
    for (size_t i = 0; i < count; ++i) real.push_back(predicted[i] * factor(4));
    std::vector<uint64_t> trials(count);
    for (uint64_t& first : trials) first = random.below(7);
    LearningTeam team(3, predicted);
    const std::vector<int> tried = team.learn([&](int rank, int candidate) {
      const auto i = static_cast<size_t>(candidate);
      trials[i] += rank == 0;
      const double us = trials[i] % 7 == 0 ? 5 * real[i] : real[i];
      return rank == 1 ? us : us * static_cast<double>(random.below(100)) / 100;
    });
    ASSERT_TRUE(team.frozen()) << "seed " << seed;
    ASSERT_LE(team.calls, Learner::kMostCalls) << "seed " << seed;
    double best = 1e9;
    for (size_t i = 0; i < count; ++i) {
      if (tried[i] > 0) best = std::min(best, real[i]);
      const bool first = i < 8 && predicted[i] <= Learner::kFactor * predicted[0];
      ASSERT_GE(tried[i], first ? 3 : 0) << "seed " << seed;
    }
    ASSERT_LE(real[static_cast<size_t>(team.learners[0].chosen())], Learner::kMargin * best + 1e-3) << "seed " << seed;
  }
}

// The same without noise: then the choice is right in each case.
TEST(LearnerProperty, WithoutNoiseTheChoiceIsTheFastest) {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    sim::Random random(seed);
    const size_t count = 2 + random.below(12);
    std::vector<double> predicted, real;
    for (size_t i = 0; i < count; ++i) predicted.push_back(10 + static_cast<double>(random.below(200)));
    std::sort(predicted.begin(), predicted.end());
    for (size_t i = 0; i < count; ++i) real.push_back(1 + static_cast<double>(random.below(200)));
    LearningTeam team(2, predicted);
    const std::vector<int> tried = team.learn(times(real));
    ASSERT_TRUE(team.frozen()) << "seed " << seed;
    double best = 1e9;
    for (size_t i = 0; i < count; ++i)
      if (tried[i] > 0) best = std::min(best, real[i]);
    ASSERT_LE(real[static_cast<size_t>(team.learners[0].chosen())], Learner::kMargin * best + 1e-3) << "seed " << seed;
  }
}

TEST(SizeClass, IsAQuarterOfAnOctave) {
  EXPECT_EQ(size_class(0), 0u);
  EXPECT_EQ(size_class(1024), size_class(1279));
  EXPECT_NE(size_class(1279), size_class(1280));
  for (uint64_t bytes = 1; bytes < 100'000; ++bytes) {
    ASSERT_GE(size_class(bytes), size_class(bytes - 1));
    ASSERT_LE(size_class(bytes) - size_class(bytes - 1), 1u + 5 * (bytes == 8)) << bytes;
  }
}

TEST(CallClass, HoldsCollectivesThatNoRankLeavesEarly) {
  const std::set<std::string> learned{"barrier",   "allgather",      "allgatherv",          "alltoall",
                                      "allreduce", "reduce_scatter", "reduce_scatter_block"};
  for (const Collective& row : kCatalog) EXPECT_EQ(row.waits_for_all(), learned.contains(row.name)) << row.name;
}

}  // namespace
}  // namespace ibcoll
