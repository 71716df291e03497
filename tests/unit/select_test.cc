// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/collectives/framework/select.h"

#include <gtest/gtest.h>

#include <cfenv>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#ifdef __SSE2__
#include <immintrin.h>
#endif

#include "runtime/base/catalog.h"
#include "runtime/collectives/framework/arguments.h"
#include "runtime/collectives/framework/cost_patterns.h"
#include "runtime/collectives/framework/registry.h"
#include "tools/oracle/elements.h"

namespace ibcoll {
namespace {

Shape shape(int p, int nodes, uint64_t bytes) {
  Shape s;
  s.p = p;
  s.nodes = nodes;
  s.bytes = bytes;
  s.total = bytes * static_cast<uint64_t>(p);
  s.fewest_local = p / nodes;
  s.most_local = (p + nodes - 1) / nodes;
  s.area_bytes = s.most_local > 1 ? 262'144 : 0;
  return s;
}

constexpr ibcoll_collective_t collective(int i) { return static_cast<ibcoll_collective_t>(i); }

bool sizes_known(int c) { return !kCatalog[c].irregular() || kCatalog[c].sizes == SizesKnown::kToAll; }

Forced forced(ibcoll_collective_t collective, const char* text, const char* origin) {
  return {parse_forced(collective, text, origin, IBCOLL_ERR_CONFIG).value(), origin};
}

// Blocks have 24, 0 and 8 bytes where sizes are irregular, else 16 bytes or two elements.
TEST(Select, ShapesHaveWhatAllRanksKnowOfACall) {
  const uint64_t counts[] = {24, 0, 8}, bytes = 16;
  for (int c = 0; c < kCollectives; ++c) {
    const Collective& row = kCatalog[c];
    ibcoll_collective_args_t given = arguments_of(collective(c), nullptr, nullptr, bytes);
    given.send_counts = given.recv_counts = counts;
    given.count = 2, given.type = IBCOLL_DOUBLE, given.op = IBCOLL_SUM;
    const Result<Args> args = check_without_buffers(given, 1, 3);
    ASSERT_TRUE(args.ok()) << args.status().text();
    const Shape s = shape_of(shape(3, 2, 12345), args.value());
    const bool known = row.sizes == SizesKnown::kToAll;
    const bool p_blocks = row.send.extent == Extent::kBlocks || row.recv.extent == Extent::kBlocks;
    EXPECT_EQ(s.nodes, 2);
    EXPECT_EQ(s.sizes_known, sizes_known(c)) << row.name;
    EXPECT_EQ(s.bytes, known ? 24 : row.irregular() ? 0 : args->bytes) << row.name;
    EXPECT_EQ(s.total, known ? 32 : p_blocks && !row.irregular() ? 3 * args->bytes : 0) << row.name;
    EXPECT_EQ(s.empty_blocks, known ? 1 : 0) << row.name;
    EXPECT_EQ(s.element_bytes, row.reduces() ? 8 : 1) << row.name;
    EXPECT_TRUE(s.commutative) << row.name;
    if (!row.reduces()) continue;
    given.type = IBCOLL_UINT64, given.op = oracle::composition();
    EXPECT_FALSE(shape_of(shape(3, 2, 12345), check_without_buffers(given, 1, 3).value()).commutative) << row.name;
  }
}

TEST(Select, SomethingAlwaysApplies) {
  for (int c = 0; c < kCollectives; ++c)
    for (int p = 1; p <= 40; ++p)
      for (const uint64_t bytes : {uint64_t{0}, uint64_t{1}, uint64_t{8192}, uint64_t{1} << 30, uint64_t{1} << 50})
        for (const int nodes : {1, 2}) {
          Shape s = shape(p, nodes, bytes);
          s.sizes_known = sizes_known(c);
          const Result<Choice> chosen = select(collective(c), s, CostModel(), {});
          ASSERT_TRUE(chosen.ok());
          ASSERT_NE(chosen.value().algorithm, nullptr) << ibcoll_collective_name(collective(c)) << " p " << p;
          s.parameter = chosen.value().parameter;
          EXPECT_EQ(chosen.value().algorithm->why_not(s), nullptr);
        }
}

// Within one collective: the cheapest of those that apply, whatever the model says.
TEST(Select, TheLowestCostWins) {
  for (const double alpha : {0.1, 1.0, 50.0})
    for (const uint64_t bytes : {uint64_t{8}, uint64_t{5000}, uint64_t{1} << 20})
      for (int c = 0; c < kCollectives; ++c) {
        CostModel model;
        model.alpha_us = alpha;
        const Shape s = shape(8, 2, bytes);
        const double lowest =
            cost_us(select(collective(c), s, model, {}, nullptr, Weighing::kTogether).value(), s, model);
        for (const Algorithm* const a : algorithms())
          if (a->collective == collective(c) && !a->why_not(s)) {
            const uint64_t parameter = a->choose ? a->choose(s, model) : 0;
            const double cost = cost_us({a, parameter}, s, model);
            EXPECT_LE(static_cast<float>(lowest), static_cast<float>(cost)) << a->name;
          }
      }
}

// FE_DOWNWARD and the like, and no subnormal numbers, where a program has asked for them.
class Mode {
 public:
  explicit Mode(int rounding) {
    std::fegetenv(&before_);
    std::fesetround(rounding);
#ifdef __SSE2__
    _mm_setcsr(_mm_getcsr() | _MM_FLUSH_ZERO_ON | 0x40);
#endif
  }
  Mode(const Mode&) = delete;
  Mode& operator=(const Mode&) = delete;
  ~Mode() { std::fesetenv(&before_); }

 private:
  std::fenv_t before_{};
};

// Ranks choose alike though each program rounds in its own way.
TEST(Select, TheProgramsRoundingDecidesNothing) {
  int compared = 0;
  for (const auto& [p, nodes] : {std::pair{6, 3}, {7, 3}, {6, 1}, {64, 4}})
    for (uint64_t bytes = 1000; bytes <= 500'000; bytes += 25'000)
      for (int c = 0; c < kCollectives; ++c) {
        const Shape s = shape(p, nodes, bytes);
        const std::vector<Candidate> wanted = candidates(collective(c), s, CostModel(), {}).value();
        const std::string text = explain(collective(c), s, CostModel(), {}, wanted).dump();
        for (const int rounding : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
          const Mode mode(rounding);
          const std::vector<Candidate> found = candidates(collective(c), s, CostModel(), {}).value();
          ASSERT_EQ(std::fegetround(), rounding);
          ASSERT_EQ(found.size(), wanted.size());
          for (size_t i = 0; i < found.size(); ++i)
            ASSERT_EQ(found[i].choice.name(), wanted[i].choice.name()) << "p " << p << " bytes " << bytes;
          ASSERT_EQ(found[0].cost_us, wanted[0].cost_us);
          ASSERT_EQ(explain(collective(c), s, CostModel(), {}, found).dump(), text);
          ++compared;
        }
      }
  EXPECT_GT(compared, 1000);
}

// Though it tries but one radix for each number of digits.
TEST(Select, TwoPhaseBruckTakesTheCheapestRadix) {
  const Algorithm& bruck = *find_algorithm(IBCOLL_ALLTOALLV, "two_phase_bruck");
  for (const double alpha : {0.1, 1.0, 50.0})
    for (const int p : {2, 3, 4, 5, 8, 9, 16, 17, 27, 64, 100, 343, 1000}) {
      CostModel model;
      model.alpha_us = alpha;
      Shape s = shape(p, 1, 0);
      double lowest = 1e300;
      for (s.parameter = 2; s.parameter <= static_cast<uint64_t>(p); ++s.parameter)
        lowest = std::min(lowest, bruck.cost_us(s, model));
      s.parameter = bruck.choose(s, model);
      EXPECT_DOUBLE_EQ(bruck.cost_us(s, model), lowest) << "p " << p << " radix " << s.parameter;
    }
}

TEST(Select, CostsArePositiveAndGrowWithTheBlocks) {
  for (const Algorithm* const a : algorithms()) {
    for (const int p : {2, 7, 16}) {
      Shape small = shape(p, 1, 64), large = shape(p, 1, 1 << 22);
      for (Shape* s : {&small, &large}) s->parameter = a->choose ? a->choose(*s, CostModel()) : 0;
      if (a->why_not(small)) continue;
      EXPECT_GT(a->cost_us(small, CostModel()), 0) << a->name;
      if (kCatalog[a->collective].moves_data() && sizes_known(a->collective)) {
        EXPECT_GT(a->cost_us(large, CostModel()), a->cost_us(small, CostModel())) << a->name << " p " << p;
      }
    }
  }
}

// Compares the two algorithms that serve ranks in the order of their arrival.
bool leaders_are_cheaper(const Shape& s, const CostModel& model) {
  return find_algorithm(IBCOLL_ALLTOALL, "pap_shm_direct")->cost_us(s, model) <
         find_algorithm(IBCOLL_ALLTOALL, "pap_direct")->cost_us(s, model);
}

// What leaders save is messages: where one costs nothing, there is nothing to save.
TEST(Select, LeadersExchangeForTheirNodesWhereMessagesCost) {
  CostModel model;
  for (const double cpu_us : {0.0, 4.0}) {
    model.cpu_us = cpu_us;
    const Shape s = shape(64, 8, 512);
    EXPECT_EQ(leaders_are_cheaper(s, model), cpu_us > 0) << cpu_us;
  }
  const Algorithm& a = *find_algorithm(IBCOLL_ALLTOALL, "pap_shm_direct");
  EXPECT_EQ(a.why_not(shape(4, 2, 8)), nullptr);
  EXPECT_NE(std::string(a.why_not(shape(4, 1, 8))).find("one node"), std::string::npos);
  EXPECT_NE(std::string(a.why_not(shape(4, 4, 8))).find("no two ranks"), std::string::npos);
  Shape small = shape(400, 2, 8);
  small.area_bytes = 4096;
  EXPECT_NE(std::string(a.why_not(small)).find("IBCOLL_SHM_SLOT_BYTES"), std::string::npos);
}

// 16 ranks of 4 emulated nodes on 2 cores, over TCP: where all ranks send, eight of a core take turns at it, of leaders
// two.
TEST(Select, LeadersShareTheirCoreWithFewer) {
  CostModel model;
  model.alpha_us = 12, model.beta_us = 4e-3, model.cpu_us = 4, model.yield_us = 8.4, model.sharing = 8;
  for (const bool by_ranks : {false, true}) {
    model.by_ranks = by_ranks;
    const Shape medium = shape(16, 4, 8192), large = shape(16, 4, 1 << 16);
    EXPECT_EQ(leaders_are_cheaper(medium, model), by_ranks);
    EXPECT_FALSE(leaders_are_cheaper(large, model));
  }
}

// 16 ranks of 4 nodes with one core each, over TCP at 1 Gbit/s: blocks that keep the link busy move as fast without
// leaders, short ones do not.
TEST(Select, NoRankWaitsForItsNodeWhereThatCostsLittle) {
  CostModel link;
  link.alpha_us = 60, link.beta_us = 0.04, link.cpu_us = 4, link.sharing = 4, link.by_ranks = true;
  const auto chosen = [&](ibcoll_collective_t collective, uint64_t bytes) {
    return select(collective, shape(16, 4, bytes), link, {}).value().name();
  };
  EXPECT_EQ(chosen(IBCOLL_ALLGATHER, 64), "pap_shm_direct");
  EXPECT_EQ(chosen(IBCOLL_ALLGATHER, 32768), "pap_shm_lanes");
  EXPECT_EQ(chosen(IBCOLL_ALLTOALL, 64), "pap_shm_direct");
  EXPECT_EQ(chosen(IBCOLL_ALLTOALL, 4096), "pap_shm_lanes");
  // Nor for the host of another rank: where lanes gain little, blocks go straight.
  const auto cost = [&](const char* algorithm, uint64_t bytes) {
    return find_algorithm(IBCOLL_ALLTOALL, algorithm)->cost_us(shape(16, 4, bytes), link);
  };
  EXPECT_EQ(chosen(IBCOLL_ALLTOALL, 32768), "pap_direct");
  for (uint64_t bytes = 1024; bytes <= 32768; bytes += 256)
    if (chosen(IBCOLL_ALLTOALL, bytes) == "pap_shm_lanes") {
      EXPECT_GE(cost("pap_direct", bytes), cost::kSecondChoice * cost("pap_shm_lanes", bytes)) << bytes;
    }
}

// In recursive doubling all ranks of a core work in each round, in a chain one after the other; and calls in a row
// overlap along a chain. Where ranks have cores of their own, rounds decide.
TEST(Select, ScanGoesAlongAChainWhereRanksShareCores) {
  CostModel link;
  link.alpha_us = 12, link.beta_us = 1e-3, link.cpu_us = 4;
  const auto chosen = [&](int p, double ranks_per_core) {
    CostModel m = link;
    m.sharing = ranks_per_core, m.yield_us = 1.2 * (ranks_per_core - 1);
    return select(IBCOLL_SCAN, shape(p, p, 8), m, {}).value().name();
  };
  EXPECT_EQ(chosen(4, 2), "linear");
  EXPECT_EQ(chosen(8, 4), "linear");
  EXPECT_EQ(chosen(4, 1), "recursive_doubling");
  EXPECT_EQ(chosen(64, 1), "recursive_doubling");
}

// Where nobody waits on the core of a rank that moves bytes, nobody looks for data there meanwhile.
TEST(Select, BytesOfLeadersCostNoMoreThanIfAllMovedAsMany) {
  CostModel m;
  m.beta_us = 8e-3, m.sharing = 8, m.by_ranks = true;
  const Shape s = shape(16, 4, 1 << 20);
  EXPECT_DOUBLE_EQ(model_of_leaders(s, m).beta_us, cost::kWaitingRanksLook * m.beta_us / 4) << "2 of 8 are leaders";
  EXPECT_DOUBLE_EQ(model_of_leaders(s, m, 4).beta_us, m.beta_us) << "all are";
  m.sharing = 1;
  CostModel adapter = m;
  adapter.by_ranks = false;
  for (const ibcoll_collective_t c : {IBCOLL_ALLREDUCE, IBCOLL_REDUCE, IBCOLL_REDUCE_SCATTER, IBCOLL_SCAN})
    for (const Algorithm* const a : algorithms()) {
      if (a->collective != c || !std::string_view(a->name).starts_with("node_") || a->why_not(s)) continue;
      Shape one = s;
      one.parameter = a->choose ? a->choose(s, m) : 0;
      EXPECT_LE(a->cost_us(one, m), a->cost_us(one, adapter)) << ibcoll_collective_name(c) << " " << a->name;
    }
}

// Where ranks share cores, a late rank that has all work to do alone has its core alone.
TEST(Select, ALateRankHasItsCoreAlone) {
  CostModel model;
  model.alpha_us = 12, model.beta_us = 8e-3, model.cpu_us = 4, model.sharing = 8, model.by_ranks = true;
  for (const uint64_t bytes : {8, 8192}) {
    for (const ibcoll_collective_t c : {IBCOLL_ALLTOALL, IBCOLL_ALLGATHER}) {
      const Choice direct{find_algorithm(c, "pap_direct"), 0}, rounds{find_algorithm(c, "pairwise"), 0};
      const Shape s = shape(16, 16, bytes);
      EXPECT_LT(late_us(direct, s, model), cost_us(direct, s, model) / 4) << bytes;
      if (rounds.algorithm) {
        EXPECT_EQ(late_us(rounds, s, model), cost_us(rounds, s, model)) << bytes;
      }
    }
  }
}

// Late ranks of a bcast: a chain of those that have arrived costs an answer to each rank, little next to long messages.
TEST(Select, AChainOfThoseThatHaveArrivedIsForLongMessages) {
  CostModel link;
  link.alpha_us = 2, link.beta_us = 1e-4, link.cpu_us = 0.2;
  const auto chosen = [&](uint64_t bytes, Weighing weighing) {
    return select(IBCOLL_BCAST, shape(16, 16, bytes), link, {}, nullptr, weighing).value().algorithm->name;
  };
  EXPECT_STREQ(chosen(2048, Weighing::kLate), "pap_direct");
  EXPECT_STREQ(chosen(2048, Weighing::kMixed), "knomial");
  EXPECT_STREQ(chosen(16 << 20, Weighing::kLate), "pap_chain");
  EXPECT_STREQ(chosen(16 << 20, Weighing::kMixed), "pap_chain");
  EXPECT_STRNE(chosen(16 << 20, Weighing::kTogether), "pap_chain");
}

// What IBCOLL_ARRIVAL weighs. By default late ranks decide among algorithms that take about as long without them.
TEST(Select, LateRanksCountAsTheSettingSays) {
  int late_is_another = 0, mixed_is_another = 0;
  for (const double sharing : {1.0, 8.0})
    for (const auto& [p, nodes] : {std::pair{16, 1}, {16, 4}, {16, 16}, {64, 8}})
      for (uint64_t bytes = 2; bytes <= 1 << 20; bytes *= 4)
        for (int c = 0; c < kCollectives; ++c) {
          CostModel model;
          model.alpha_us = 12, model.beta_us = 1e-3 * sharing, model.cpu_us = 4, model.sharing = sharing;
          model.yield_us = cost::kSliceUs * (sharing - 1), model.by_ranks = true;
          const Shape s = shape(p, nodes, bytes);
          const auto of = [&](Weighing weighing) {
            return candidates(collective(c), s, model, {}, nullptr, weighing).value();
          };
          const Candidate together = of(Weighing::kTogether).front(), mixed = of(Weighing::kMixed).front(),
                          late = of(Weighing::kLate).front();
          for (const Candidate& one : of(Weighing::kTogether)) {
            EXPECT_LE(together.cost_us, one.cost_us);
            EXPECT_LE(late.late_us, one.late_us);
            if (one.cost_us <= cost::kWorthLateRanks * together.cost_us) {
              EXPECT_LE(mixed.cost_us * mixed.late_us, one.cost_us * one.late_us);
            }
          }
          EXPECT_LE(mixed.cost_us, cost::kWorthLateRanks * together.cost_us);
          late_is_another += late.choice.algorithm != together.choice.algorithm;
          mixed_is_another += mixed.choice.algorithm != together.choice.algorithm;
        }
  EXPECT_GT(late_is_another, mixed_is_another);
  EXPECT_GT(mixed_is_another, 0);
}

// 16 ranks of 4 nodes on 2 cores, as above: one rank of a node talks for it, and long messages go down a chain of
// nodes.
TEST(Select, NodePhasesOfBarrierAndBroadcast) {
  CostModel model;
  model.alpha_us = 12, model.beta_us = 4e-3, model.cpu_us = 4, model.yield_us = 8.4, model.sharing = 8;
  model.by_ranks = true;
  const auto chosen = [&](ibcoll_collective_t c, const Shape& s) {
    return std::string(select(c, s, model, {}).value().algorithm->name);
  };
  EXPECT_EQ(chosen(IBCOLL_BARRIER, shape(16, 4, 0)), "leaders");
  EXPECT_EQ(chosen(IBCOLL_BCAST, shape(16, 4, 8)), "leaders");
  EXPECT_EQ(chosen(IBCOLL_BCAST, shape(16, 4, 1 << 20)), "leaders_chain");
  EXPECT_EQ(chosen(IBCOLL_BARRIER, shape(16, 16, 0)), "tree") << "where cores are shared, few messages count";
  model.sharing = 1, model.yield_us = 0;
  EXPECT_EQ(chosen(IBCOLL_BARRIER, shape(16, 16, 0)), "dissemination") << "where they are not, few rounds do";
}

// Without levels of a tree all blocks go straight, with all levels none does: both are other algorithms, which come
// first then.
TEST(Select, ATreeWithoutLevelsIsNoBargain) {
  for (const ibcoll_collective_t c : {IBCOLL_GATHER, IBCOLL_SCATTER})
    for (const int p : {2, 3, 4, 5, 8, 13, 16, 40})
      for (const double cpu_us : {0.01, 0.1, 1.0})
        for (const double alpha_us : {0.5, 2.0, 30.0})
          for (uint64_t bytes = 2; bytes <= 1 << 24; bytes *= 8) {
            CostModel model;
            model.cpu_us = cpu_us, model.alpha_us = alpha_us;
            const Shape s = shape(p, p, bytes);
            const auto of = [&](const char* name, uint64_t threshold) {
              return cost_us({find_algorithm(c, name), threshold}, s, model);
            };
            EXPECT_DOUBLE_EQ(of("ordered_tree", 1), of("linear", 0)) << p << " " << bytes;
            EXPECT_DOUBLE_EQ(of("ordered_tree", bytes * 64), of("binomial", 0)) << p << " " << bytes;
            const Choice chosen = select(c, s, model, {}).value();
            if (chosen.algorithm->name != std::string("ordered_tree")) continue;
            EXPECT_LT(cost_us(chosen, s, model), std::min(of("linear", 0), of("binomial", 0))) << p << " " << bytes;
            EXPECT_GE(chosen.parameter, 2 * bytes - 1) << "a level at least";
          }
  CostModel model;
  model.cpu_us = 0.1, model.alpha_us = 2;
  EXPECT_STREQ(select(IBCOLL_GATHER, shape(4, 4, 1024), model, {}).value().algorithm->name, "linear");
  EXPECT_STREQ(select(IBCOLL_SCATTER, shape(4, 4, 1024), model, {}).value().algorithm->name, "linear");
}

// A tree moves most blocks more than once. 16 ranks on 2 cores, of one node and of 4 emulated ones over TCP.
TEST(Select, LongBlocksAreGatheredAndScatteredStraight) {
  CostModel node, tcp;
  node.alpha_us = 0.8, node.beta_us = 1e-3, node.cpu_us = 0.9, node.yield_us = 8.4, node.sharing = 8;
  tcp.alpha_us = 12, tcp.beta_us = 4e-3, tcp.cpu_us = 4, tcp.yield_us = 8.4, tcp.sharing = 8, tcp.by_ranks = true;
  for (const ibcoll_collective_t c : {IBCOLL_GATHER, IBCOLL_SCATTER})
    for (const uint64_t bytes : {1 << 19, 1 << 20, 1 << 24}) {
      EXPECT_STREQ(select(c, shape(16, 1, bytes), node, {}).value().algorithm->name, "linear") << bytes;
      EXPECT_STREQ(select(c, shape(16, 4, bytes), tcp, {}).value().algorithm->name, "linear") << bytes;
      EXPECT_STREQ(select(c, shape(2, 1, bytes), node, {}).value().algorithm->name, "linear") << bytes;
    }
}

std::string explained(ibcoll_collective_t collective, const Shape& s, const CostModel& model, const Forced& forced,
                      const CostModel* steady = nullptr) {
  const std::vector<Candidate> all = candidates(collective, s, model, forced, steady).value();
  return explain(collective, s, model, forced, all).dump();
}

TEST(Select, OneRankGetsTheSimplestAlgorithm) {
  const std::pair<ibcoll_collective_t, const char*> simplest[] = {
      {IBCOLL_BCAST, "binomial"},  {IBCOLL_GATHER, "linear"},         {IBCOLL_GATHERV, "linear"},
      {IBCOLL_SCATTER, "linear"},  {IBCOLL_SCATTERV, "linear"},       {IBCOLL_ALLGATHER, "ring"},
      {IBCOLL_ALLTOALL, "direct"}, {IBCOLL_REDUCE_SCATTER, "linear"}, {IBCOLL_SCAN, "linear"}};
  for (const auto& [c, name] : simplest)
    for (const uint64_t bytes : {8, 1 << 20})
      EXPECT_STREQ(select(c, shape(1, 1, bytes), CostModel(), {}).value().algorithm->name, name);
  EXPECT_NE(explained(IBCOLL_BCAST, shape(1, 1, 8), CostModel(), {}).find("one rank"), std::string::npos);
}

// Two ranks on near cores, and on far ones: copies cost seven times as much there, reads half as much again.
TEST(Select, OneCopyOrTwoIsAMatterOfWhatTheyCost) {
  CostModel near, far;
  near.copy_us = near.streamed_copy_us = 3.4e-5, near.read_us_per_byte = 1.1e-4;
  far.copy_us = far.streamed_copy_us = 2.4e-4, far.read_us_per_byte = 1.6e-4;
  for (const ibcoll_collective_t c : {IBCOLL_BCAST, IBCOLL_ALLGATHER, IBCOLL_ALLTOALL, IBCOLL_ALLREDUCE}) {
    Shape s = shape(2, 1, 1 << 18);
    s.single_copy = true;
    EXPECT_STREQ(select(c, s, near, {}).value().algorithm->name, "shm") << ibcoll_collective_name(c);
    EXPECT_STREQ(select(c, s, far, {}).value().algorithm->name, "single_copy") << ibcoll_collective_name(c);
    s.bytes = s.total = 1024;
    EXPECT_STREQ(select(c, s, far, {}).value().algorithm->name, "shm") << ibcoll_collective_name(c);
    s = shape(2, 1, 1 << 18);
    EXPECT_NE(find_algorithm(c, "single_copy")->why_not(s), nullptr) << "the kernel refuses it";
  }
}

// Two nodes of one rank. A message more costs less than combining the other half, from some size on; where combining
// is slow, from a much smaller one on.
TEST(Select, TwoRanksCombineHalfEachWhereThatPays) {
  CostModel adapter;
  adapter.alpha_us = 2, adapter.beta_us = 2.5e-4, adapter.cpu_us = 0.2;
  CostModel emulated = adapter;
  emulated.combine_us = 1e-2;
  const auto chosen = [](uint64_t bytes, const CostModel& m) {
    return std::string(select(IBCOLL_ALLREDUCE, shape(2, 2, bytes), m, {}).value().algorithm->name);
  };
  EXPECT_EQ(chosen(8, adapter), "recursive_doubling");
  EXPECT_EQ(chosen(32768, adapter), "recursive_doubling");
  EXPECT_EQ(chosen(1 << 18, adapter), "rabenseifner");
  EXPECT_EQ(chosen(8, emulated), "recursive_doubling");
  EXPECT_EQ(chosen(2048, emulated), "rabenseifner");
}

// Near cores, where a cache that both share hands over long streams faster than they take bytes from each other.
TEST(Select, LongStreamsMayGoThroughSharedMemory) {
  CostModel m;
  m.copy_us = 6.7e-5, m.streamed_copy_us = 3e-5, m.read_us = 1.8, m.read_us_per_byte = 8e-5;
  for (const ibcoll_collective_t c : {IBCOLL_ALLGATHER, IBCOLL_ALLTOALL, IBCOLL_ALLREDUCE}) {
    Shape s = shape(2, 1, 1 << 20);
    s.single_copy = true;
    EXPECT_STREQ(select(c, s, m, {}).value().algorithm->name, "shm") << ibcoll_collective_name(c);
    m.own_cache_bytes = 1 << 23;  // all that is under way stays in them
    EXPECT_STREQ(select(c, s, m, {}).value().algorithm->name, "single_copy") << ibcoll_collective_name(c);
    m.own_cache_bytes = 1 << 20;
  }
}

TEST(Select, OneCopyOfTwoRanksStaysAheadBeyondTheCaches) {
  CostModel m;
  m.copy_us = m.streamed_copy_us = 8.5e-5, m.read_us_per_byte = 8.5e-5;
  for (const ibcoll_collective_t c : {IBCOLL_BCAST, IBCOLL_ALLGATHER, IBCOLL_ALLTOALL, IBCOLL_ALLREDUCE})
    for (uint64_t bytes = 1 << 20; bytes <= 1 << 28; bytes *= 2) {
      Shape s = shape(2, 1, bytes);
      s.single_copy = true;
      const double two = find_algorithm(c, "shm")->cost_us(s, m);
      const double one = find_algorithm(c, "single_copy")->cost_us(s, m);
      EXPECT_LT(one, two) << ibcoll_collective_name(c) << " of " << bytes;
    }
}

TEST(Select, ManyRanksDoNotReadFromOne) {
  Shape s = shape(128, 1, 1 << 20);
  s.single_copy = true;
  CostModel far;
  far.copy_us = 2.4e-4, far.read_us_per_byte = 1.6e-4;
  EXPECT_STREQ(select(IBCOLL_BCAST, s, far, {}).value().algorithm->name, "shm");
}

// The size at which the bytes of the two ways of alltoall cost the same; steps are left out.
TEST(CostModel, ReadsPayFromWhereTheyCostTheSame) {
  CostModel m;
  m.copy_us = 1e-4, m.read_us = 2, m.read_us_per_byte = 1.6e-4;
  EXPECT_NEAR(static_cast<double>(m.read_from(2)), 2 / 4e-5, 1);
  m.cache_bytes = 12 * 40'000;  // then two copies leave the caches first
  EXPECT_NEAR(static_cast<double>(m.read_from(2)), 40'000, 1);
  m.cache_bytes = 12 * 8;  // they always do; a read still costs its start-up
  EXPECT_NEAR(static_cast<double>(m.read_from(2)), 2 / 1.4e-4, 1);
  m.cache_bytes = 1 << 25;
  m.copy_us = 5e-5, m.read_us = 1;  // never in the caches
  EXPECT_NEAR(static_cast<double>(m.read_from(16)), (1 << 25) / 768.0, 1);
}

TEST(CostModel, StreamsPayWhereTwoCopiesInThemAreCheaperThanARead) {
  CostModel m;
  m.own_cache_bytes = 1 << 20;
  m.streamed_copy_us = 3e-5, m.read_us_per_byte = 8e-5;
  EXPECT_EQ(m.stream_from(2, 1 << 18), uint64_t{1} << 18);
  EXPECT_EQ(m.stream_from(4, 1 << 18), uint64_t{1} << 17);
  EXPECT_GT(m.stream_from(2, 1 << 16), uint64_t{1} << 40);  // areas that stay in the cache of one core
  m.sharing = 2;                                            // a turn of all ranks for each piece
  EXPECT_GT(m.stream_from(2, 1 << 18), uint64_t{1} << 40);
  m.sharing = 1;
  m.streamed_copy_us = 5e-5;
  EXPECT_GT(m.stream_from(2, 1 << 18), uint64_t{1} << 40);
}

TEST(Select, TheForcedOneRunsEvenIfItIsDearer) {
  const Shape s = shape(16, 1, 1 << 20);
  const Forced direct = forced(IBCOLL_ALLTOALL, "direct", "IBCOLL_ALLTOALL");
  const Result<Choice> chosen = select(IBCOLL_ALLTOALL, s, CostModel(), direct);
  ASSERT_TRUE(chosen.ok());
  EXPECT_EQ(chosen.value().name(), "direct");
  const std::string decision = explained(IBCOLL_ALLTOALL, s, CostModel(), direct);
  EXPECT_NE(decision.find("\"reason\":\"demanded by IBCOLL_ALLTOALL\""), std::string::npos) << decision;
}

TEST(Select, WhatDoesNotApplyIsAnErrorThatSaysWhatWould) {
  const Result<Choice> wrong_p = select(IBCOLL_ALLGATHER, shape(3, 2, 8), CostModel(),
                                        forced(IBCOLL_ALLGATHER, "recursive_doubling", "IBCOLL_ALLGATHER"));
  ASSERT_FALSE(wrong_p.ok());
  EXPECT_EQ(wrong_p.status().code(), IBCOLL_ERR_NOT_APPLICABLE);
  for (const char* const part :
       {"allgather", "recursive_doubling", "IBCOLL_ALLGATHER", "power of two", "ring, ", "bruck"})
    EXPECT_NE(wrong_p.status().text().find(part), std::string::npos) << part << ": " << wrong_p.status().text();
  EXPECT_EQ(wrong_p.status().text().find(" shm,"), std::string::npos) << "shm does not apply on two nodes";
}

TEST(Select, ExplainsItself) {
  const std::string text = explained(IBCOLL_ALLGATHER, shape(3, 2, 1000), CostModel(), {});
  for (const char* const part : {"lowest predicted cost", "\"ring\"", "\"bruck\"", "cost_us", "not_applicable",
                                 "\"algorithm\":\"recursive_doubling\",\"why\""})
    EXPECT_NE(text.find(part), std::string::npos) << part << " is not in: " << text;
}

TEST(Forced, ParametersAndRanges) {
  const auto entries = parse_forced(IBCOLL_ALLGATHER, "ring:64K..,bruck:..1K,shm", "the call", IBCOLL_ERR_CONFIG);
  ASSERT_TRUE(entries.ok()) << entries.status().text();
  const auto at = [&](uint64_t bytes) { return std::string(entry_for(entries.value(), bytes).choice.algorithm->name); };
  EXPECT_EQ(at(0), "bruck");
  EXPECT_EQ(at(1023), "bruck");
  EXPECT_EQ(at(1024), "shm");
  EXPECT_EQ(at(65535), "shm");
  EXPECT_EQ(at(65536), "ring");
  EXPECT_EQ(at(UINT64_MAX), "ring");
  EXPECT_TRUE(parse_forced(IBCOLL_ALLGATHER, "auto", "x", IBCOLL_ERR_CONFIG).value().empty());
}

TEST(Forced, WhatIsWrongIsAnErrorThatShowsTheGrammar) {
  const std::pair<const char*, const char*> wrong[] = {{"magic", "there is no such algorithm 'magic'"},
                                                       {"ring:4", "takes no parameter"},
                                                       {"ring:..1K", "sizes from 1024 on have no entry"},
                                                       {"ring:1K..", "sizes from 0 to 1024 have no entry"},
                                                       {"ring:..4K,bruck:1K..", "have two entries"},
                                                       {"ring,bruck", "two entries have no range"},
                                                       {"ring:4K..1K,bruck", "is empty"},
                                                       {"ring:1x..,bruck", "is no size"},
                                                       {"ring:..1K:7,bruck", "a part too many"},
                                                       {"ring,", "there is no such algorithm ''"}};
  for (const auto& [text, part] : wrong) {
    const auto result = parse_forced(IBCOLL_ALLGATHER, text, "IBCOLL_ALLGATHER", IBCOLL_ERR_CONFIG);
    ASSERT_FALSE(result.ok()) << text;
    EXPECT_EQ(result.status().code(), IBCOLL_ERR_CONFIG);
    for (const std::string& wanted : {std::string(part), std::string("NAME[:PARAMETER][:FROM..TO]"), std::string(text)})
      EXPECT_NE(result.status().text().find(wanted), std::string::npos) << result.status().text();
  }
}

TEST(Registry, NamesAreUniqueAndFound) {
  std::set<std::pair<int, std::string>> names;
  for (const Algorithm* const a : algorithms()) {
    EXPECT_TRUE(names.emplace(a->collective, a->name).second) << a->name;
    EXPECT_EQ(find_algorithm(a->collective, a->name), a);
    EXPECT_NE(std::string(a->about), "");
  }
  EXPECT_EQ(find_algorithm(IBCOLL_BARRIER, "ring"), nullptr);
  EXPECT_EQ(find_algorithm(IBCOLL_BARRIER, ""), nullptr);
}

// What was timed chooses among the algorithms of one order of operands; the order is the steady model's choice.
TEST(Select, WhatWasTimedDoesNotChangeTheOrderOfOperands) {
  CostModel steady, slow;
  slow.alpha_us = 50, slow.beta_us = 0.1;
  int algorithms_of_one_order = 0;
  for (const ibcoll_collective_t c : {IBCOLL_ALLREDUCE, IBCOLL_REDUCE, IBCOLL_REDUCE_SCATTER_BLOCK})
    for (const int nodes : {1, 4, 16})
      for (uint64_t bytes = 8; bytes <= 1 << 22; bytes *= 4) {
        const Shape s = shape(16, nodes, bytes);
        const Choice first = select(c, s, steady, {}).value();
        const Choice then = select(c, s, slow, {}, &steady).value();
        EXPECT_EQ(then.algorithm->order, first.algorithm->order);
        if (first.algorithm->order == Order::kOwn) {
          EXPECT_EQ(then.name(), first.name());
        } else {
          algorithms_of_one_order += then.algorithm != first.algorithm;
          EXPECT_LE(cost_us(then, s, slow), cost_us(first, s, slow)) << then.name() << " for " << first.name();
        }
      }
  EXPECT_GT(algorithms_of_one_order, 0);
  const std::string decision = explained(IBCOLL_ALLREDUCE, shape(16, 16, 1 << 20), slow, {}, &steady);
  EXPECT_NE(decision.find("IBCOLL_DETERMINISTIC=no permits it"), std::string::npos);
}

}  // namespace
}  // namespace ibcoll
