// SPDX-License-Identifier: BSD-3-Clause
// Which seeds a test runs, and how a failing one is run again alone:
//   IBCOLL_TEST_SEED=N     only this seed
//   IBCOLL_TEST_RANKS=P    only this number of ranks
//   IBCOLL_TEST_MOST_RANKS=P, IBCOLL_TEST_SEEDS=N    no more ranks, so many seeds instead of the usual numbers
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <string>

namespace ibcoll {

inline uint64_t number_from(const char* variable, uint64_t fallback) {
  const char* const text = std::getenv(variable);
  return text && *text ? std::strtoull(text, nullptr, 0) : fallback;
}

// The seeds [first, last].
struct Seeds {
  uint64_t first, last;
  explicit Seeds(uint64_t usual)
      : first(number_from("IBCOLL_TEST_SEED", 1)),
        last(std::getenv("IBCOLL_TEST_SEED") ? first : number_from("IBCOLL_TEST_SEEDS", usual)) {}
};

inline std::string replay_command(uint64_t seed, int ranks = 0) {
  const auto* const test = ::testing::UnitTest::GetInstance()->current_test_info();
  std::string command = "run it again alone: IBCOLL_TEST_SEED=" + std::to_string(seed);
  if (ranks) command += " IBCOLL_TEST_RANKS=" + std::to_string(ranks);
  return command + " ibcoll_simulated_tests --gtest_filter=" + test->test_suite_name() + "." + test->name();
}

}  // namespace ibcoll
