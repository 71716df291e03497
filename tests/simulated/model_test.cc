// SPDX-License-Identifier: BSD-3-Clause
// ibcoll_sim's model against formulas: what the papers' linear model says of algorithms that are simple enough to know
// it.
#include <gtest/gtest.h>

#include <bit>

#include "tests/simulated/replay.h"
#include "tools/ibcoll_sim/experiment.h"
#include "tools/ibcoll_sim/model.h"
#include "tools/ibcoll_sim/run.h"
#include "tools/ibcoll_sim/watch.h"

namespace ibcoll::simulator {
namespace {

constexpr double kBeta = 0.08e-3;                // us per byte, of 12.5 GB/s
constexpr double kAdvertisement = 24 * 0.08e-3;  // us, of its bytes

Options call(ibcoll_collective_t collective, const char* algorithm, int ranks, int nodes) {
  Options options;
  options.collective = &kCatalog[collective];
  options.algorithms = {algorithm};
  options.ranks = ranks;
  options.nodes = nodes;
  options.copy_bandwidth = 0;
  options.eager_bytes = 1 << 20;  // no advertisements
  return options;
}

Row run(const Options& options, uint64_t bytes) {
  std::vector<Row> rows;
  const Status status = run_size(options, bytes, nullptr, rows);
  EXPECT_TRUE(status.ok()) << status.text();
  return status.ok() ? rows.front() : Row{};
}

void expect_time(const Options& options, uint64_t bytes, double us) {
  // Each message is rounded down to nanoseconds.
  EXPECT_NEAR(run(options, bytes).time_us, us, 1e-3 * options.ranks)
      << options.ranks << " ranks, " << bytes << " bytes";
}

TEST(SimModel, LinearGatherTakesAMessageAfterTheOther) {
  for (const int p : {2, 3, 16, 33})
    for (const uint64_t m : {1, 1000, 100000}) {
      Options options = call(IBCOLL_GATHER, "linear", p, p);
      const auto bytes = static_cast<double>(m);
      expect_time(options, m, (p - 1) * (2 + kBeta * bytes));
      options.gap_us = 0.5;
      expect_time(options, m, 2 + (p - 1) * kBeta * bytes + (p - 2) * 0.5);
      options.gap_us = 5;
      expect_time(options, m, 2 + (p - 1) * kBeta * bytes + (p - 2) * 5);
    }
}

TEST(SimModel, AnAdvertisementCostsOneAlphaMore) {
  for (const int p : {2, 3, 16}) {
    Options options = call(IBCOLL_GATHER, "linear", p, p);
    options.eager_bytes = 0;
    const double us = 2 + kAdvertisement + (p - 1) * (2 + kBeta * 5000);
    expect_time(options, 5000, us);
    EXPECT_EQ(run(options, 5000).control_messages, static_cast<uint64_t>(p - 1));
  }
}

TEST(SimModel, RingAllgatherTakesPMinusOneRounds) {
  for (const int p : {2, 3, 16, 33}) {
    const Options options = call(IBCOLL_ALLGATHER, "ring", p, p);
    expect_time(options, 10000, (p - 1) * (2 + kBeta * 10000));
    const Row row = run(options, 10000);
    EXPECT_EQ(row.rounds, static_cast<uint32_t>(p - 1));
    EXPECT_EQ(row.between_nodes.messages, static_cast<uint64_t>(p) * static_cast<uint64_t>(p - 1));
    EXPECT_EQ(row.between_nodes.bytes, row.between_nodes.messages * 10000);
    EXPECT_EQ(row.within_nodes.messages, 0u);
  }
}

TEST(SimModel, BinomialBcastTakesLgPRounds) {
  for (const int p : {2, 3, 4, 7, 8, 9, 33, 64}) {
    Options options = call(IBCOLL_BCAST, "binomial", p, p);
    options.root = p / 3;
    const int rounds = static_cast<int>(std::bit_width(static_cast<unsigned>(p - 1)));
    expect_time(options, 10000, rounds * (2 + kBeta * 10000));
    EXPECT_LE(run(options, 10000).rounds, static_cast<uint32_t>(rounds));
    EXPECT_EQ(run(options, 10000).between_nodes.messages, static_cast<uint64_t>(p - 1));
  }
}

// Operands are combined twice as fast as they come. All but the last piece is combined meanwhile, and nothing is copied.
TEST(SimModel, OperandsAreCombinedWhileOthersCome) {
  struct Reduction {
    ibcoll_collective_t collective;
    const char* algorithm;
  };
  for (const Reduction& one :
       {Reduction{IBCOLL_ALLREDUCE, "rabenseifner"}, Reduction{IBCOLL_ALLREDUCE, "recursive_doubling"},
        Reduction{IBCOLL_REDUCE_SCATTER_BLOCK, "recursive_halving"}, Reduction{IBCOLL_REDUCE_SCATTER, "pairwise"}}) {
    Options options = call(one.collective, one.algorithm, 2, 2);
    options.eager_bytes = 8 << 10;
    options.gap_us = 0.1;
    const double free = run(options, 1 << 20).time_us;
    options.copy_bandwidth = 25;
    EXPECT_LE(run(options, 1 << 20).time_us, 1.06 * free) << one.algorithm;
  }
}

// Every node sends each of its k blocks to k ranks of the other one: through one port, or through k.
TEST(SimModel, RanksOfANodeShareItsPort) {
  for (const int k : {1, 2, 4}) {
    Options options = call(IBCOLL_ALLGATHER, "direct", 2 * k, 2);
    options.node_alpha_us = options.node_gap_us = 0;
    options.node_bandwidth = 1000;
    options.ports = sim::Ports::kNode;
    expect_time(options, 10000, k * k * (2 + kBeta * 10000));
    options.ports = sim::Ports::kRank;
    // k messages each; that several ranks send to the same one first costs k - 1 more at most.
    EXPECT_GE(run(options, 10000).time_us, k * (2 + kBeta * 10000) - 0.01);
    EXPECT_LE(run(options, 10000).time_us, (2 * k - 1) * (2 + kBeta * 10000) + 0.01);
  }
}

TEST(SimModel, WithinANodeItsOwnCostsCount) {
  Options options = call(IBCOLL_BCAST, "binomial", 8, 1);
  options.node_alpha_us = options.node_gap_us = 1;
  options.node_bandwidth = 5;
  expect_time(options, 10000, 3 * (1 + 2.0));
  EXPECT_EQ(run(options, 10000).within_nodes.messages, 7u);
}

TEST(SimModel, CopiesAndFlagsTakeTime) {
  Options alone = call(IBCOLL_SCATTER, "linear", 1, 1);
  alone.copy_bandwidth = 10;
  expect_time(alone, 1000000, 100);
  Options shm = call(IBCOLL_ALLGATHER, "shm", 4, 1);
  shm.flag_us = 0.7;
  expect_time(shm, 8, 0.7);
  shm.copy_bandwidth = 10;
  // Into the window, the flag, and the blocks of the others out of it.
  const Row row = run(shm, 10000);
  EXPECT_GE(row.time_us, 1 + 0.7 + 3);
  EXPECT_LE(row.time_us, 1 + 0.7 + 4 + 1);
}

TEST(SimModel, WhoIsLateDelaysWhoWaitsForIt) {
  Options options = call(IBCOLL_GATHER, "linear", 5, 5);
  options.arrival = {Arrival::Kind::kLate, {3}, 100};
  expect_time(options, 1000, 100 + 2 + kBeta * 1000);
  EXPECT_LT(run(options, 1000).mean_us, 25);
}

Task do_nothing(Comm&, Args) { co_return; }

TEST(SimModel, WrongBytesOfAllRanksAreCounted) {
  Options options = call(IBCOLL_BCAST, "binomial", 4, 4);
  options.check = true;
  const Algorithm nothing{.collective = IBCOLL_BCAST,
                          .name = "nothing",
                          .about = "",
                          .run = do_nothing,
                          .cost_us = [](const Shape&, const CostModel&) { return 1.0; }};
  simulator::Run one(options, call_params(options, 1000), Choice{&nothing, 0}, 0, nullptr);
  const Status status = one.run();
  ASSERT_TRUE(status.ok()) << status.text();
  Row row;
  one.fill(row);
  EXPECT_GT(row.errors, 2000u);  // of 3000: a byte that was not written has the right value now and then
}

TEST(SimModel, BytesThatAreNotThereTakeTheSameTime) {
  for (const Collective& row : kCatalog)
    for (const int nodes : sweep() ? std::vector{1, 3, 7} : std::vector{3}) {
      Options options = call(row.id, "all", 7, nodes);
      options.copy_bandwidth = 10;
      options.eager_bytes = 512;
      options.distribution = oracle::Distribution::kDecreasing;
      for (const uint64_t bytes : {64, 4000}) {
        options.check = false;
        std::vector<Row> without, with;
        ASSERT_TRUE(run_size(options, bytes, nullptr, without).ok());
        options.check = true;
        ASSERT_TRUE(run_size(options, bytes, nullptr, with).ok());
        for (size_t i = 0; i < without.size(); ++i) {
          const Row &a = without[i], &b = with[i];
          EXPECT_EQ(a.time_us, b.time_us) << row.name << " " << a.algorithm << " " << nodes << " nodes";
          EXPECT_EQ(a.between_nodes.messages, b.between_nodes.messages) << row.name << " " << a.algorithm;
          EXPECT_EQ(a.rounds, b.rounds) << row.name << " " << a.algorithm;
          EXPECT_EQ(b.errors, 0u) << b.damage;
        }
      }
    }
}

}  // namespace
TEST(SimMemory, RanksThatDoNotFitAreRefusedWithHowManyDo) {
  EXPECT_TRUE(fits(1000, "nothing", 0, 100 << 20).ok());
  const Status many = fits(1 << 20, "nothing", 0, 1 << 30);
  EXPECT_EQ(many.code(), IBCOLL_ERR_NO_MEMORY);
  EXPECT_EQ(many.text(), "1048576 ranks take at least 6.3 GB, and 1.0 GB are available: enough for 165191 ranks");
  const Status lists = fits(65536, "the block sizes", uint64_t{128} << 30, uint64_t{8} << 30);
  EXPECT_EQ(lists.text(), "the block sizes of 65536 ranks take 128.0 GB, and 8.0 GB are available; use fewer ranks");
}

}  // namespace ibcoll::simulator
