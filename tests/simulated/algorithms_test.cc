// SPDX-License-Identifier: BSD-3-Clause
// Every algorithm of the registry, for every number of ranks from 1 to 40 and some larger ones.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "runtime/collectives/framework/registry.h"
#include "tests/simulated/replay.h"
#include "tests/simulated/scenario.h"

namespace ibcoll {
namespace {

class EveryAlgorithm : public ::testing::TestWithParam<const Algorithm*> {};

TEST_P(EveryAlgorithm, ForEveryNumberOfRanks) {
  std::vector<int> ranks{63, 64, 65, 100};
  for (int p = 40; p >= 1; --p) ranks.insert(ranks.begin(), p);
  const int only = static_cast<int>(number_from("IBCOLL_TEST_RANKS", 0));
  const int most = static_cast<int>(number_from("IBCOLL_TEST_MOST_RANKS", 100));
  for (const int p : ranks) {
    if ((only && p != only) || p > most || !applies(*GetParam(), p)) continue;
    const Seeds seeds(p <= 8 ? 6 : 2);  // a fault may show in few calls of few ranks, and these cost little
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
