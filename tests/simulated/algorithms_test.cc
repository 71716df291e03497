// SPDX-License-Identifier: BSD-3-Clause
// Every algorithm of the registry, for many numbers of ranks: all small ones, powers of two and their neighbours.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <numeric>
#include <vector>

#include "runtime/collectives/framework/registry.h"
#include "tests/simulated/replay.h"
#include "tests/simulated/scenario.h"

namespace ibcoll {
namespace {

class EveryAlgorithm : public ::testing::TestWithParam<const Algorithm*> {};

std::vector<int> ranks_to_try() {
  if (const auto only = static_cast<int>(number_from("IBCOLL_TEST_RANKS", 0))) return {only};
  std::vector<int> ranks(sweep() ? 40 : 9);
  std::iota(ranks.begin(), ranks.end(), 1);
  for (const int p : sweep() ? std::vector<int>{63, 64, 65, 100} : std::vector<int>{12, 15, 16, 17, 21})
    ranks.push_back(p);
  return ranks;
}

TEST_P(EveryAlgorithm, ForEveryNumberOfRanks) {
  for (const int p : ranks_to_try()) {
    if (!applies(*GetParam(), p)) continue;
    // A fault may show in few calls of few ranks, and these cost little.
    const Seeds seeds(p <= 8 ? 3 : 1, p <= 8 ? 6 : 2);
    for (uint64_t seed = seeds.first; seed <= seeds.last; ++seed) {
      const bool large = p > 40;
      const ScenarioResult result = run_scenario({seed, GetParam(), p, large ? 1 : 2, large ? 1 : 2});
      ASSERT_EQ(result.failure, "") << replay_command(seed, p);
      ASSERT_GT(result.calls, 0u) << "it applied to no call; " << replay_command(seed, p);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Registry, EveryAlgorithm, ::testing::ValuesIn(algorithms().begin(), algorithms().end()),
                         [](const auto& info) {
                           return fmt::format("{}_{}", ibcoll_collective_name(info.param->collective),
                                              info.param->name);
                         });

}  // namespace
}  // namespace ibcoll
