// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/machine/back_off.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace ibcoll {
namespace {

TEST(WaitStrategy, SpinsOnlyWhereEveryRankHasACore) {
  EXPECT_GT(WaitStrategy("auto", 1.0).spins(), 100u);
  EXPECT_EQ(WaitStrategy("auto", 1.5).spins(), 1u);
  EXPECT_EQ(WaitStrategy("auto", 8.0).spins(), 1u);
}

TEST(WaitStrategy, DoesAsItIsTold) {
  EXPECT_GT(WaitStrategy("spin", 8.0).spins(), 100u);
  EXPECT_EQ(WaitStrategy("yield", 1.0).spins(), 1u);
  EXPECT_EQ(WaitStrategy("sleep", 1.0).spins(), 1u);
  EXPECT_STREQ(WaitStrategy("sleep", 1.0).name(), "sleep");
  EXPECT_NE(std::string(WaitStrategy("auto", 4.0).name()).find("yield"), std::string::npos);
}

// Whatever the mode: the time to look for dead peers comes, again and again.
TEST(WaitStrategy, LongWaitsAreTold) {
  for (const char* const mode : {"auto", "spin", "yield", "sleep"}) {
    const WaitStrategy strategy(mode, 1.0);
    WaitStrategy::Pause pause(strategy);
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    int told = 0;
    while (told < 3 && std::chrono::steady_clock::now() < end) told += pause.pause();
    EXPECT_EQ(told, 3) << mode;
  }
}

TEST(WaitStrategy, TiredOnlyOfYieldingForAWhile) {
  for (const char* const mode : {"auto", "spin"}) {
    const WaitStrategy strategy(mode, 4.0);
    WaitStrategy::Pause pause(strategy);
    for (int round = 0; round < 2; ++round) {
      EXPECT_FALSE(pause.tired(/*for_a_leader=*/false)) << mode;
      EXPECT_FALSE(pause.tired(/*for_a_leader=*/true)) << mode << ": the leader may come to another processor";
      const std::chrono::milliseconds patience(mode == std::string("spin") ? 100 : 20'000);
      const auto end = std::chrono::steady_clock::now() + patience;
      while (!pause.tired(false) && std::chrono::steady_clock::now() < end) pause.pause();
      EXPECT_EQ(pause.tired(false), std::string(mode) != "spin");
      pause.slept(/*woken=*/true);  // all anew
    }
    int told = 0;
    for (int i = 0; i < 100; ++i) told += pause.slept(/*woken=*/false);
    EXPECT_GE(told, 5) << "it looks for dead peers now and then";
    EXPECT_LE(told, 20);
  }
}

TEST(WaitStrategy, TiredAtOnceOfKeepingALeaderFromTheOnlyProcessor) {
  for (const char* const mode : {"auto", "spin"}) {
    const WaitStrategy strategy(mode, 4.0, /*one_cpu=*/true);
    WaitStrategy::Pause pause(strategy);
    EXPECT_EQ(pause.tired(/*for_a_leader=*/true), std::string(mode) != "spin");
    EXPECT_FALSE(pause.tired(/*for_a_leader=*/false)) << mode;
  }
}

TEST(WaitStrategy, SleepsEndSoonAndBeginAgainAfterProgress) {
  const WaitStrategy strategy("sleep", 1.0);
  WaitStrategy::Pause pause(strategy);
  for (int i = 0; i < 200; ++i) pause.pause();  // as long as they get
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 10; ++i) pause.pause();
  const auto asleep = std::chrono::steady_clock::now() - begin;
  EXPECT_GE(asleep, std::chrono::microseconds(10 * 400));
  pause.fresh();
  EXPECT_FALSE(pause.pause());
}

}  // namespace
}  // namespace ibcoll
