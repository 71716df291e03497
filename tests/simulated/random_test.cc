// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/sim/random.h"

#include <gtest/gtest.h>

#include "runtime/sim/event_queue.h"

namespace ibcoll {
namespace {

TEST(SimRandom, IsTheSameEverywhere) {
  sim::Random random(1);
  // Written down once: a change of the generator makes every recorded seed worthless.
  uint64_t digest = 0;
  for (int i = 0; i < 1000; ++i) digest = sim::mix64(digest ^ random.next());
  EXPECT_EQ(digest, 14592700659730577741u);
}

TEST(SimRandom, SplitDoesNotDependOnWhatWasDrawn) {
  sim::Random fresh(7), used(7);
  for (int i = 0; i < 10; ++i) used.next();
  EXPECT_EQ(fresh.split(3).next(), used.split(3).next());
  EXPECT_NE(fresh.split(3).next(), fresh.split(4).next());
}

TEST(SimRandom, BoundsAreKeptAndReached) {
  sim::Random random(2);
  int seen[10] = {};
  for (int i = 0; i < 1000; ++i) ++seen[random.below(10)];
  for (const int count : seen) EXPECT_GT(count, 50);
  for (int i = 0; i < 100; ++i) {
    const int64_t value = random.between(-1, 1);
    EXPECT_GE(value, -1);
    EXPECT_LE(value, 1);
  }
  EXPECT_EQ(random.below(0), 0u);
  EXPECT_FALSE(random.permille(0));
  EXPECT_TRUE(random.permille(1000));
}

TEST(EventQueue, GivesTimesInOrderAndKeepsTheOrderOfEqualTimes) {
  sim::Random random(3);
  sim::EventQueue queue;
  for (uint32_t i = 0; i < 5000; ++i) queue.push(random.below(100), sim::QueuedEvent::kWake, i);
  Time time = 0;
  uint32_t subject = 0;
  for (int i = 0; i < 5000; ++i) {
    const sim::QueuedEvent event = queue.pop();
    ASSERT_GE(event.time, time);
    if (event.time == time && i > 0) {
      ASSERT_GT(event.subject, subject);
    }
    time = event.time;
    subject = event.subject;
  }
  EXPECT_TRUE(queue.empty());
}

}  // namespace
}  // namespace ibcoll
