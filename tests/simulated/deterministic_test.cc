// SPDX-License-Identifier: BSD-3-Clause
// Reductions with a fixed order of operands: the same bits in every run, and which algorithms give the same ones.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>

#include "runtime/base/catalog.h"
#include "runtime/collectives/framework/registry.h"
#include "tests/simulated/replay.h"
#include "tests/simulated/scenario.h"

namespace ibcoll {
namespace {

constexpr uint64_t kElements = 300;  // of a block
constexpr int kRanks = 7, kRoot = 3;
const std::vector<int> kInterleaved{0, 1, 0, 1, 2, 1, 0}, kNeighbours{0, 0, 1, 1, 1, 2, 2};

// One call of a sum of floats that depends on the order of its operands.
class FloatSum {
 public:
  FloatSum(const Algorithm& algorithm, bool fixed_order) : algorithm_(algorithm), fixed_order_(fixed_order) {
    sim::Random random(7);
    for (int rank = 0; rank < kRanks; ++rank) {
      sends_.emplace_back(kElements * kRanks);
      for (float& x : sends_.back()) x = static_cast<float>(random.below(1 << 20)) * (random.one_in(2) ? 1e-4F : 1.1F);
      receives_.emplace_back(kElements * (scatters() ? 1 : kRanks));
    }
  }

  // The bits of all results; "" where the algorithm does not apply.
  std::string run(uint64_t seed, const std::vector<int>& nodes) {
    sim::Random random(seed);
    SimJobParams params = random_job(random, kRanks);
    params.network.node_of = nodes;
    params.window_area_bytes = 4096;
    SimJob job(params);
    const int team = job.make_world();
    const Placement& placement = job.placement(team);
    Shape shape;
    shape.p = kRanks, shape.nodes = placement.node_count(), shape.element_bytes = sizeof(float);
    shape.fewest_local = placement.fewest_local(), shape.most_local = placement.most_local();
    shape.nodes_in_rank_order = placement.in_rank_order(), shape.area_bytes = params.window_area_bytes;
    shape.bytes = receives_[0].size() * sizeof(float), shape.total = scatters() ? shape.bytes * kRanks : 0;
    if (algorithm_.why_not(shape)) return "";
    const uint64_t parameter = algorithm_.choose ? algorithm_.choose(shape, CostModel()) : 0;
    const std::vector<Time> arrivals = random_arrivals(random, kRanks);
    std::vector<std::unique_ptr<Request>> requests;
    for (int rank = 0; rank < kRanks; ++rank) {
      const Args args = args_of(rank);
      requests.push_back(
          std::make_unique<Request>(job.team(team, rank), args, Choice{&algorithm_, parameter}, IBCOLL_SCHEME_AUTO, 1));
      SimStep step;
      step.request = requests.back().get();
      step.delay_ns = arrivals[static_cast<size_t>(rank)];
      job.add_step(rank, std::move(step));
    }
    const Status status = job.run();
    EXPECT_TRUE(status.ok()) << status.text();
    std::string bits;
    for (const auto& receive : receives_)
      bits.append(reinterpret_cast<const char*>(receive.data()), receive.size() * sizeof(float));
    return bits;
  }

  // The bits of block `index` of the vector at rank `index`, after a run.
  std::string block(int index) const {
    const std::vector<float>& receive = receives_[static_cast<size_t>(index)];
    const float* const first = receive.data() + (scatters() ? 0 : kElements * static_cast<size_t>(index));
    return {reinterpret_cast<const char*>(first), kElements * sizeof(float)};
  }

 private:
  bool scatters() const { return kCatalog[algorithm_.collective].send.extent == Extent::kBlocks; }

  Args args_of(int rank) {
    Args args;
    args.collective = algorithm_.collective;
    args.root = kRoot;
    args.count = receives_[0].size();
    args.bytes = args.count * sizeof(float);
    args.send.base = reinterpret_cast<const std::byte*>(sends_[static_cast<size_t>(rank)].data());
    args.send.bytes = args.bytes;
    args.recv.base = reinterpret_cast<std::byte*>(receives_[static_cast<size_t>(rank)].data());
    args.recv.bytes = args.bytes;
    args.reduction = {IBCOLL_SUM, IBCOLL_FLOAT};
    args.fixed_order = fixed_order_;
    return args;
  }

  const Algorithm& algorithm_;
  bool fixed_order_;
  std::vector<std::vector<float>> sends_, receives_;
};

std::string same_bits(const Algorithm& algorithm, bool fixed_order, const std::vector<int>& nodes, uint64_t runs) {
  const std::string first = FloatSum(algorithm, fixed_order).run(1, nodes);
  for (uint64_t seed = 2; seed <= runs && !first.empty(); ++seed)
    if (FloatSum(algorithm, fixed_order).run(seed, nodes) != first)
      return std::string(algorithm.name) + " gives other bits with seed " + std::to_string(seed);
  return "";
}

TEST(Deterministic, ReductionsGiveTheSameBitsWhoeverComesFirst) {
  for (const Algorithm* const algorithm : algorithms()) {
    if (!kCatalog[algorithm->collective].reduces()) continue;
    for (const auto& nodes : {std::vector<int>(kRanks, 0), kInterleaved, kNeighbours})
      EXPECT_EQ(same_bits(*algorithm, true, nodes, number_from("IBCOLL_TEST_SEEDS", 10)), "")
          << ibcoll_collective_name(algorithm->collective);
  }
}

TEST(Deterministic, OtherwiseOperandsAreCombinedAsTheyCome) {
  EXPECT_NE(same_bits(*find_algorithm(IBCOLL_REDUCE, "binomial"), false, kInterleaved, 40), "");
  EXPECT_NE(same_bits(*find_algorithm(IBCOLL_REDUCE, "shm"), false, std::vector<int>(kRanks, 0), 40), "");
  EXPECT_NE(same_bits(*find_algorithm(IBCOLL_ALLREDUCE, "node_recursive_doubling"), false, kInterleaved, 40), "");
}

// Order of operands and bytes of the result, at kRoot's block of the vector; of all algorithms that apply.
std::map<Order, std::set<std::string>> bits_by_order(const std::vector<int>& nodes) {
  std::map<Order, std::set<std::string>> bits;
  for (const Algorithm* const a : algorithms()) {
    const bool reduces_vectors = a->collective == IBCOLL_ALLREDUCE || a->collective == IBCOLL_REDUCE ||
                                 a->collective == IBCOLL_REDUCE_SCATTER_BLOCK;
    FloatSum sum(*a, true);
    if (reduces_vectors && !sum.run(3, nodes).empty()) bits[a->order].insert(sum.block(kRoot));
  }
  return bits;
}

TEST(Deterministic, AlgorithmsOfOneOrderGiveTheSameBits) {
  for (const auto& nodes : {std::vector<int>(kRanks, 0), kInterleaved, kNeighbours}) {
    std::map<Order, std::set<std::string>> bits = bits_by_order(nodes);
    EXPECT_EQ(bits[Order::kRanks].size(), 1u);
    EXPECT_EQ(bits[Order::kDoubling].size(), 1u);
    EXPECT_EQ(bits[Order::kNodes].size(), nodes == std::vector<int>(kRanks, 0) ? 0u : 1u);
    EXPECT_GT(bits[Order::kOwn].size(), 1u);
    EXPECT_NE(bits[Order::kRanks], bits[Order::kDoubling]);
  }
}

}  // namespace
}  // namespace ibcoll
