// SPDX-License-Identifier: BSD-3-Clause
// The trial of links, over simulated ones whose speed is known.
#include "runtime/context/link_trial.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "runtime/sim/network.h"

namespace ibcoll {
namespace {

// Each rank is the leader of a node. Returns what each of them has found.
class LinkJob {
 public:
  LinkJob(int ranks, uint64_t beta_ps_per_byte) : LinkJob(params(ranks, beta_ps_per_byte)) {}
  explicit LinkJob(const sim::Params& params) : network_(params), ended_(static_cast<size_t>(params.ranks)) {
    for (int rank = 0; rank < params.ranks; ++rank)
      trials_.push_back(std::make_unique<LinkTrial>(network_.transport(rank), (rank + params.ranks - 1) % params.ranks,
                                                    (rank + 1) % params.ranks));
  }
  static sim::Params params(int ranks, uint64_t beta_ps_per_byte) {
    sim::Params params;
    params.ranks = ranks;
    params.between_nodes = {20'000, 5'000, beta_ps_per_byte};
    params.slot_bytes = 65536;
    params.slots_per_pair = 32;
    return params;
  }
  sim::Network& network() { return network_; }
  LinkTrial& trial(int rank) { return *trials_[static_cast<size_t>(rank)]; }
  // A rank that has ended leaves. False: not all have ended although nothing happens any more, or a second has passed.
  bool run() {
    for (;;) {
      bool all = true;
      for (size_t rank = 0; rank < trials_.size(); ++rank)
        if (network_.alive(static_cast<int>(rank)) && !ended_[rank])
          all = (ended_[rank] = trials_[rank]->step()) && all;
      if (all) return true;
      if (!network_.advance() || network_.now() > 1'000'000'000) return false;
    }
  }

 private:
  sim::Network network_;
  std::vector<std::unique_ptr<LinkTrial>> trials_;
  std::vector<bool> ended_;
};

constexpr double kRounding = 1.19;  // a quarter of an octave

TEST(LinkTrial, FindsTheSpeedOfTheLinks) {
  for (const int ranks : {2, 3, 16})
    for (const uint64_t beta_ps : {100000, 8000, 800}) {  // 80 Mbit/s, 1 and 10 Gbit/s
      SCOPED_TRACE(std::to_string(ranks) + " ranks, " + std::to_string(beta_ps) + " ps per byte");
      LinkJob job(ranks, beta_ps);
      ASSERT_TRUE(job.run());
      const double beta = static_cast<double>(beta_ps) / 1e6;
      for (int rank = 0; rank < ranks; ++rank) {
        ASSERT_TRUE(job.trial(rank).failure().ok());
        EXPECT_GE(job.trial(rank).us_per_byte(), beta / kRounding);
        EXPECT_LE(job.trial(rank).us_per_byte(), 1.1 * beta * kRounding);
      }
    }
}

TEST(LinkTrial, TakesMillisecondsAndEndsEarlyOnSlowLinks) {
  LinkJob gigabit(4, 8000);
  ASSERT_TRUE(gigabit.run());
  EXPECT_LT(gigabit.network().now(), 10'000'000u);
  LinkJob slow(4, 800000);  // 10 Mbit/s: 64 KB take 52 ms
  ASSERT_TRUE(slow.run());
  EXPECT_LT(slow.network().now(), 150'000'000u);
}

TEST(LinkTrial, TheSameLinkGivesTheSameValueInEveryRun) {
  double first = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    sim::Params params = LinkJob::params(3, 8000);
    params.seed = seed;
    LinkJob job(params);
    ASSERT_TRUE(job.run());
    if (seed == 1) first = job.trial(0).us_per_byte();
    EXPECT_EQ(job.trial(0).us_per_byte(), first) << "seed " << seed;
  }
}

TEST(LinkTrial, EndsWhereCreditIsShortAndSendsAreRefused) {
  sim::Params params = LinkJob::params(3, 8000);
  params.slot_bytes = 4096;
  params.slots_per_pair = 2;
  params.refuse_permille = 300;
  LinkJob job(params);
  ASSERT_TRUE(job.run());
  EXPECT_GT(job.trial(1).us_per_byte(), 0);
}

TEST(LinkTrial, ALostPeerIsAnErrorThatNamesIt) {
  LinkJob job(3, 8000);
  job.network().kill(2, 1'000'000);
  (void)job.run();
  const Status& failure = job.trial(0).failure();
  ASSERT_EQ(failure.code(), IBCOLL_ERR_PEER_FAILED);
  EXPECT_NE(failure.text().find("rank 2"), std::string::npos) << failure.text();
}

TEST(LinkTrial, AReportCountsUnlessTheLinkInTheMiddleCarriesLessThanHalfOfIt) {
  LinkModel model;
  model.beta_us_per_byte = 0.0008;
  model.beta = LinkModel::Beta::kReported;
  EXPECT_EQ(believed_us_per_byte(model, {}), 0.0008) << "not timed";
  EXPECT_EQ(believed_us_per_byte(model, {0.0015}), 0.0008);
  EXPECT_EQ(believed_us_per_byte(model, {0.0002}), 0.0008);
  EXPECT_EQ(believed_us_per_byte(model, {0.0083, 0.0084}), 0.0083) << "10 Gbit/s, limited by a shaper to 1 Gbit/s";
  EXPECT_EQ(believed_us_per_byte(model, {0.0009, 0.0831, 0.0010}), 0.0008) << "one rank was kept from its processor";
  model.beta = LinkModel::Beta::kAssumed;
  EXPECT_EQ(believed_us_per_byte(model, {0.0002, 0.0003, 0.0001}), 0.0002);
}

}  // namespace
}  // namespace ibcoll
