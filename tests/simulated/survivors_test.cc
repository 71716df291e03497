// SPDX-License-Identifier: BSD-3-Clause
// Ranks die at any moment; the others agree, shrink and go on. What holds for every run is in survivors_job.cc.
#include <gtest/gtest.h>

#include "tests/simulated/replay.h"
#include "tests/simulated/survivors_job.h"

namespace ibcoll {
namespace {

// One to three deaths; in some runs a rank counts another one as dead that lives, or comes too late.
TEST(Survivors, DeathsAtRandomMoments) {
  const Seeds seeds(1000, 10'000);
  uint64_t shrinks = 0, timeouts = 0;
  for (uint64_t seed = seeds.first; seed <= seeds.last; ++seed) {
    sim::Random random = sim::Random(seed).split(7);
    SurvivorsParams params;
    params.seed = seed;
    params.p = 2 + static_cast<int>(random.below(9));
    params.late = random.one_in(8);
    const uint64_t events = 20 * static_cast<uint64_t>(params.p * params.p);  // about as many as without deaths
    for (uint64_t deaths = 1 + random.below(3); deaths > 0; --deaths) params.deaths.push_back(1 + random.below(events));
    if (random.one_in(4)) params.burial = 1 + random.below(events);
    const SurvivorsResult result = SurvivorsJob(params).run();
    ASSERT_EQ(result.failure, "") << replay_command(seed);
    shrinks += static_cast<uint64_t>(result.shrinks);
    timeouts += static_cast<uint64_t>(result.timeouts);
  }
  EXPECT_TRUE((shrinks > 0 && timeouts > 0) || seeds.first == seeds.last);
}

TEST(Survivors, ADeathAtEveryEvent) {
  const Seeds seeds(5, 50);
  for (uint64_t seed = seeds.first; seed <= seeds.last; ++seed) {
    SurvivorsParams params;
    params.seed = seed;
    params.p = 2 + static_cast<int>(seed % 3);
    params.phases = 1;
    const uint64_t events = SurvivorsJob(params).run().events;
    for (uint64_t at = 1; at <= events; ++at) {
      params.deaths = {at};
      const SurvivorsResult result = SurvivorsJob(params).run();
      ASSERT_EQ(result.failure, "") << "a death at event " << at << "; " << replay_command(seed);
    }
  }
}

TEST(Survivors, ManyRanks) {
  SurvivorsParams params;
  params.p = static_cast<int>(number_from("IBCOLL_TEST_RANKS", sweep() ? 4096 : 512));
  params.data = false;
  params.phases = 1;
  params.deaths = {static_cast<uint64_t>(params.p) * 8};
  const SurvivorsResult result = SurvivorsJob(params).run();
  EXPECT_EQ(result.failure, "");
  EXPECT_EQ(result.dead, 1);
  EXPECT_EQ(result.shrinks, 1);
}

}  // namespace
}  // namespace ibcoll
