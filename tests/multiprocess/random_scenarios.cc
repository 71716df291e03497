// SPDX-License-Identifier: BSD-3-Clause
// Random programs, one after the other.
//   IBCOLL_TEST_SEED=N     only that of seed N
//   IBCOLL_TEST_SEEDS=N    N instead of the usual number
#include <cstdlib>

#include "tests/multiprocess/random_program.h"

namespace ibcoll::multiprocess {
namespace {

constexpr uint64_t kPrograms = 30;

uint64_t number_from(const char* variable, uint64_t fallback) {
  const char* const text = std::getenv(variable);
  return text && *text ? std::strtoull(text, nullptr, 0) : fallback;
}

void random_programs(Rank& self) {
  const uint64_t first = number_from("IBCOLL_TEST_SEED", 1);
  const uint64_t last = std::getenv("IBCOLL_TEST_SEED") ? first : number_from("IBCOLL_TEST_SEEDS", kPrograms);
  for (uint64_t seed = first; seed <= last; ++seed) {
    RandomProgram(self, seed).run();
    if (complaints() == 0) continue;
    fmt::print(stderr, "rank {}: run it again alone: IBCOLL_TEST_SEED={}\n", self.rank, seed);
    return;
  }
}

constexpr Scenario kRandomScenarios[] = {{"random_programs", random_programs}};

}  // namespace

std::span<const Scenario> random_scenarios() { return kRandomScenarios; }

}  // namespace ibcoll::multiprocess
