// SPDX-License-Identifier: BSD-3-Clause
// Tests what "Practical, linear-time, fully distributed algorithms for irregular gather and scatter" promises of its
// trees: Lemma 3 (what each rank learns, by how many messages, in how many dependent steps) and theorem 1 (the time).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <numeric>

#include "runtime/collectives/framework/registry.h"
#include "runtime/collectives/gather/tree.h"
#include "tests/simulated/replay.h"
#include "tests/simulated/scenario.h"

namespace ibcoll {
namespace {

constexpr uint64_t kNoLimit = uint64_t{1} << 50;

// The problems of the paper, and empty ones.
enum class Problem { kSame, kRandom, kSpikes, kDecreasing, kAlternating, kTwoBlocks, kMostlyEmpty, kEmpty };
constexpr Problem kProblems[] = {Problem::kSame,        Problem::kRandom,      Problem::kSpikes,
                                 Problem::kDecreasing,  Problem::kAlternating, Problem::kTwoBlocks,
                                 Problem::kMostlyEmpty, Problem::kEmpty};

std::vector<uint64_t> sizes_of(Problem problem, int p, uint64_t b, sim::Random& random) {
  std::vector<uint64_t> sizes(static_cast<size_t>(p), 0);
  for (size_t i = 0; i < sizes.size(); ++i) {
    const uint64_t rest = sizes.size() - i;
    if (problem == Problem::kSame) sizes[i] = b;
    if (problem == Problem::kRandom) sizes[i] = 1 + random.below(2 * b);
    if (problem == Problem::kSpikes) sizes[i] = random.one_in(5) ? 5 * b : 1;
    if (problem == Problem::kDecreasing) sizes[i] = 2 * b * rest / sizes.size() + 1;
    if (problem == Problem::kAlternating) sizes[i] = i % 2 == 0 ? b + b / 2 : b - b / 2;
    if (problem == Problem::kTwoBlocks) sizes[i] = i == 0 || rest == 1 ? b : 0;
    if (problem == Problem::kMostlyEmpty) sizes[i] = random.one_in(4) ? random.below(b) : 0;
  }
  return sizes;
}

// The tree as Lemmas 1 and 2 define it, computed from all sizes.
struct Reference {
  struct Cube {
    int gather_root = 0, last = 0;
    uint64_t time = 0, own = 0;  // in bytes
    uint64_t all() const { return time + own; }
  };
  struct Edge {
    int to = -1;
    uint64_t bytes = 0;
  };
  std::vector<uint64_t> sizes;
  int root;
  std::vector<Edge> sends;     // of each rank
  uint64_t messages = 0;       // of the construction
  std::vector<Cube> beside{};  // the root's children, innermost cube first

  Reference(std::vector<uint64_t> m, int r) : sizes(std::move(m)), root(r), sends(sizes.size()) {
    int width = 1;
    while (width < p()) width *= 2;
    cube(0, width);
  }
  int p() const { return static_cast<int>(sizes.size()); }

  Cube cube(int from, int width) {
    if (width == 1) return {from, from, 0, sizes[static_cast<size_t>(from)]};
    const Cube a = cube(from, width / 2);
    if (from + width / 2 >= p()) return a;
    const Cube b = cube(from + width / 2, width / 2);
    const bool root_in_a = from <= root && root <= a.last, root_in_b = a.last < root && root <= b.last;
    const bool a_waits_longer = a.time > b.time || (a.time == b.time && a.all() >= b.all());
    const bool to_a = root_in_a || (!root_in_b && a_waits_longer);
    const Cube &to = to_a ? a : b, &other = to_a ? b : a;
    sends[static_cast<size_t>(other.gather_root)] = {to.gather_root, other.all()};
    if (root_in_a || root_in_b) {
      ++messages;  // to the root, which all know
      beside.push_back(other);
    } else {
      messages += 2;
      for (const Cube& half : {a, b}) messages += half.all() > 0 && half.gather_root != half.last;
    }
    return {to.gather_root, b.last, to.time + other.all(), to.own};
  }
  // In bytes, and less than all.
  uint64_t penalty() const {
    uint64_t worst = 0, before = 0;
    for (const Cube& child : beside) {
      if (child.time > before) worst = std::max(worst, child.time - before);
      before += child.all();
    }
    return worst;
  }
  uint64_t total() const {
    return std::accumulate(sizes.begin(), sizes.end(), uint64_t{0}) - sizes[static_cast<size_t>(root)];
  }
};

// One call on a network without chance, a rank per node.
class Call {
 public:
  Call(ibcoll_collective_t collective, const Reference& problem, const Algorithm& algorithm, uint64_t threshold,
       Time alpha_ns, uint64_t beta_ps)
      : job_(params_of(problem.p(), alpha_ns, beta_ps)) {
    const int team = job_.make_world();
    CallParams call;
    call.collective = collective;
    call.p = problem.p();
    call.counts = problem.sizes;
    call.root = problem.root;
    buffers_ = std::make_unique<CollectiveCase>(call, 3);
    for (int rank = 0; rank < problem.p(); ++rank) {
      requests_.push_back(make_request(job_.team(team, rank), *buffers_, algorithm, threshold));
      SimStep step;
      step.request = requests_.back().get();
      step.before_start = [this, rank] { buffers_->at(rank).fill(0); };
      const bool moves = algorithm.run != nullptr && std::string_view(algorithm.name) != "probe";
      step.completed = [this, rank, moves](const Status& status) {
        EXPECT_TRUE(status.ok()) << status.text();
        if (moves) {
          EXPECT_EQ(buffers_->at(rank).check(0), "");
        }
      };
      job_.add_step(rank, std::move(step));
    }
    const Status status = job_.run();
    EXPECT_TRUE(status.ok()) << status.text();
  }
  Time time() { return job_.network().now(); }
  sim::Counters counters() { return job_.network().counters(); }

 private:
  static SimJobParams params_of(int p, Time alpha_ns, uint64_t beta_ps) {
    SimJobParams params;
    params.network.ranks = p;
    params.network.between_nodes = {alpha_ns, 0, beta_ps};
    params.network.slots_per_pair = 64;
    params.limits.eager_bytes = 64;  // construction messages leave at once, blocks after an advertisement
    params.lazy = 0;
    return params;
  }
  SimJob job_;
  std::unique_ptr<CollectiveCase> buffers_;
  std::vector<std::unique_ptr<Request>> requests_;
};

// The construction alone. Here every rank leaves what it has learnt.
std::vector<gather::Position>* learnt;

Task probe(Comm& c, Args a) {
  const auto trees = gather::Trees::of_ranks(gather::TreeShape::kOrdered, gather::Sizes::kIrregular, a);
  if (c.rank() != a.root) {
    gather::Position& position = (*learnt)[static_cast<size_t>(c.rank())];
    gather::CubeData about{.root_bytes = a.bytes, .gather_root = static_cast<uint64_t>(c.rank())};
    about.add(c.rank(), a.bytes);
    co_await gather::find_position(c, trees, about, &position);
    co_await c.flushed();
    co_return;
  }
  std::byte* const received = c.scratch(sizeof(gather::CubeData) * 32);
  for (int level = 0; level < ceil_log2(c.size()); ++level) {
    const gather::Cube cube = gather::Cube::beside(a.root, level, c.size());
    if (!cube.empty())
      c.announce(cube.fixed_root(),
                 Bytes(received + sizeof(gather::CubeData) * static_cast<uint64_t>(level), sizeof(gather::CubeData)));
  }
  co_await c.received();
}
constexpr Algorithm kProbe{.collective = IBCOLL_GATHERV,
                           .name = "probe",
                           .about = "",
                           .run = probe,
                           .cost_us = [](const Shape&, const CostModel&) { return 1.0; }};

std::vector<int> numbers_of_ranks() {
  std::vector<int> ranks(sweep() ? 129 : 20);
  std::iota(ranks.begin(), ranks.end(), 2);
  if (sweep()) {
    ranks.insert(ranks.end(), {200, 255, 256, 257, 500, 1000, 1600});
  } else {
    ranks.insert(ranks.end(), {26, 32, 33, 39, 64, 65, 100, 257, 500});
  }
  return ranks;
}

TEST(OrderedTree, EachRankLearnsWhatLemma3SendsItInFewSteps) {
  sim::Random random(5);
  for (const int p : numbers_of_ranks())
    for (const Problem problem : kProblems) {
      const int root = static_cast<int>(random.below(static_cast<uint64_t>(p)));
      const Reference tree(sizes_of(problem, p, 100, random), root);
      std::vector<gather::Position> positions(static_cast<size_t>(p));
      learnt = &positions;
      Call run(IBCOLL_GATHERV, tree, kProbe, kNoLimit, 1000, 0);
      const std::string where = fmt::format("p {} root {} problem {}", p, root, static_cast<int>(problem));
      // The messages of Lemma 3 and no other, all of the same size.
      ASSERT_EQ(run.counters().messages, tree.messages) << where;
      ASSERT_EQ(run.counters().bytes, tree.messages * sizeof(gather::CubeData)) << where;
      ASSERT_EQ(run.counters().puts, 0u) << where;
      ASSERT_LE(run.time(), static_cast<Time>(1000 * (2 * ceil_log2(p) - 1))) << where;
      // A rank knows its parent and the data of its children.
      std::vector<uint64_t> known(static_cast<size_t>(p), 0), due(static_cast<size_t>(p), 0);
      for (int rank = 0; rank < p; ++rank) {
        const Reference::Edge& edge = tree.sends[static_cast<size_t>(rank)];
        const gather::Position& position = positions[static_cast<size_t>(rank)];
        if (rank == root) continue;
        if (edge.bytes > 0) {
          ASSERT_EQ(position.parent, edge.to) << where << " rank " << rank;
        }
        due[static_cast<size_t>(edge.to)] += edge.bytes;
        for (int i = 0; i < position.count; ++i) {
          const gather::Child& child = position.children[i];
          const Reference::Edge& sent = tree.sends[static_cast<size_t>(child.unit)];
          ASSERT_EQ(child.bytes, sent.to == rank ? sent.bytes : 0) << where << " rank " << rank;
          known[static_cast<size_t>(rank)] += child.bytes;
        }
      }
      for (int rank = 0; rank < p; ++rank)
        if (rank != root) {
          ASSERT_EQ(known[static_cast<size_t>(rank)], due[static_cast<size_t>(rank)]) << where;
        }
    }
}

// The paper's graceful degradation: two long blocks side by side far from the root move once each, not twice.
TEST(OrderedTree, CubesAboveTheThresholdGoStraightToTheRoot) {
  for (const ibcoll_collective_t collective : {IBCOLL_GATHERV, IBCOLL_SCATTERV})
    for (const int p : {16, 21}) {
      std::vector<uint64_t> sizes(static_cast<size_t>(p), 10);
      sizes[14] = sizes[15] = 100'000;
      const Reference tree(sizes, 0);
      const auto moved = [&](uint64_t threshold) {
        return Call(collective, tree, *find_algorithm(collective, "ordered_tree"), threshold, 1000, 100)
            .counters()
            .bytes;
      };
      const uint64_t small = 100 * static_cast<uint64_t>(p) * 4;
      EXPECT_GT(moved(kNoLimit), 300'000u);
      EXPECT_LT(moved(50'000), 200'000 + small);
      EXPECT_LT(moved(99'999), 200'000 + small);
    }
}

class LinearTime : public ::testing::TestWithParam<ibcoll_collective_t> {};

// 3 ceil(lg p) alpha + beta sum m_i + penalty, and one alpha a level for the advertisements.
TEST_P(LinearTime, StaysBelowTheBoundOfTheTheorem) {
  constexpr Time kAlpha = 2000;
  constexpr uint64_t kBeta = 80;
  const Algorithm& algorithm = *find_algorithm(GetParam(), "ordered_tree");
  sim::Random random(6);
  std::vector<int> ranks = numbers_of_ranks();
  ranks.resize(ranks.size() - 2);
  for (const int p : ranks)
    for (const Problem problem : kProblems)
      for (const uint64_t b : {uint64_t{4}, uint64_t{4000}, uint64_t{40'000}}) {
        if (p > 16 && (p % 13 != 0 || b > 4000)) continue;
        const int root = random.one_in(2) ? p / 2 : static_cast<int>(random.below(static_cast<uint64_t>(p)));
        const Reference tree(sizes_of(problem, p, b, random), root);
        const auto levels = static_cast<Time>(ceil_log2(p));
        const Time bound = 4 * levels * kAlpha + (tree.total() + tree.penalty()) * kBeta / 1000;
        for (const uint64_t threshold : {kNoLimit, uint64_t{400'000}, uint64_t{20'000}}) {
          Call run(GetParam(), tree, algorithm, threshold, kAlpha, kBeta);
          ASSERT_LE(run.time(), bound) << fmt::format("p {} root {} problem {} b {} threshold {}", p, root,
                                                      static_cast<int>(problem), b, threshold);
        }
      }
}

INSTANTIATE_TEST_SUITE_P(Paper, LinearTime, ::testing::Values(IBCOLL_GATHERV, IBCOLL_SCATTERV));

}  // namespace
}  // namespace ibcoll
