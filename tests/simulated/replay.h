// SPDX-License-Identifier: BSD-3-Clause
// Which seeds a test runs, and how a failing one is run again alone:
//   IBCOLL_TEST_SEED=N     only this seed
//   IBCOLL_TEST_RANKS=P    only this number of ranks
//   IBCOLL_TEST_SEEDS=N    N seeds instead of the usual number
//   IBCOLL_TEST_SWEEP=all  every number of ranks and many seeds, as tests/run --all does; else some of each kind
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

inline bool sweep() {
  const char* const text = std::getenv("IBCOLL_TEST_SWEEP");
  return text && std::string(text) == "all";
}

// The seeds [first, last]: `usual` of them, or `swept` in a sweep.
struct Seeds {
  uint64_t first, last;
  explicit Seeds(uint64_t usual, uint64_t swept) : Seeds(sweep() ? swept : usual) {}
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
