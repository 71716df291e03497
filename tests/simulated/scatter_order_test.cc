// SPDX-License-Identifier: BSD-3-Clause
// Scatter and scatterv serve the largest cube of a rank first, whichever of them is ready first: its blocks have the
// longest way.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <memory>

#include "runtime/collectives/framework/registry.h"
#include "tests/simulated/replay.h"
#include "tests/simulated/scenario.h"
#include "tools/oracle/distributions.h"

namespace ibcoll {
namespace {

// Notes the ranks that each rank puts blocks to, in order.
class PutOrder : public sim::Observer {
 public:
  explicit PutOrder(int p) : served_(static_cast<size_t>(p)) {}
  void departs(const sim::Message& message, Time, Time) override {
    if (message.kind == sim::Message::Kind::kPut) served_[static_cast<size_t>(message.from)].push_back(message.to);
  }

  const std::vector<int>& served_by(int rank) const { return served_[static_cast<size_t>(rank)]; }

 private:
  std::vector<std::vector<int>> served_;
};

// The level of the smallest cube that has both ranks.
int level_of(int a, int b) { return std::bit_width(static_cast<unsigned>(a ^ b)); }

class ScattervOrder : public ::testing::TestWithParam<const char*> {};

TEST_P(ScattervOrder, TheLargestCubeIsServedFirst) {
  constexpr int p = 21;
  int later = 0;  // children that were served after another
  const Seeds seeds(40);
  for (uint64_t seed = seeds.first; seed <= seeds.last && !HasFailure(); ++seed) {
    SCOPED_TRACE(replay_command(seed));
    SimJobParams params;
    params.network.ranks = p;
    params.network.seed = seed;
    params.limits.eager_bytes = 64;                   // so that blocks alone are put
    params.network.between_nodes.jitter_ns = 10'000;  // so that small cubes are often ready before large ones
    SimJob job(params);
    PutOrder order(p);
    job.network().watch(&order);
    const int team = job.make_world();
    CallParams wanted;
    wanted.collective = IBCOLL_SCATTERV;
    wanted.p = p;
    wanted.root = static_cast<int>(seed % p);
    for (int rank = 0; rank < p; ++rank)
      wanted.counts.push_back(100 + oracle::draw(seed * p + static_cast<uint64_t>(rank)) % 1000);
    CollectiveCase call(wanted, seed);
    const Algorithm& algorithm = *find_algorithm(IBCOLL_SCATTERV, GetParam());
    std::vector<std::unique_ptr<Request>> requests;
    for (int rank = 0; rank < p; ++rank) {
      requests.push_back(make_request(job.team(team, rank), call, algorithm, algorithm.parameter.most));
      SimStep step;
      step.request = requests.back().get();
      step.before_start = [&call, rank] { call.at(rank).fill(0); };
      step.completed = [&call, rank](const Status&) { EXPECT_EQ(call.at(rank).check(0), ""); };
      job.add_step(rank, std::move(step));
    }
    const Status status = job.run();
    ASSERT_TRUE(status.ok()) << status.text();
    for (int rank = 0; rank < p; ++rank) {
      const std::vector<int>& served = order.served_by(rank);
      for (size_t i = 1; i < served.size(); ++i) {
        EXPECT_LT(level_of(rank, served[i]), level_of(rank, served[i - 1]))
            << fmt::format("rank {} serves {}", rank, fmt::join(served, " "));
        ++later;
      }
    }
  }
  EXPECT_GT(later, 0);
}

INSTANTIATE_TEST_SUITE_P(Trees, ScattervOrder, ::testing::Values("binomial", "ordered_tree"));

}  // namespace
}  // namespace ibcoll
