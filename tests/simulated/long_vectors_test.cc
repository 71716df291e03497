// SPDX-License-Identifier: BSD-3-Clause
// Reductions of vectors that take several pieces, with bounded scratch.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "runtime/collectives/framework/halving.h"
#include "runtime/collectives/framework/pieces.h"
#include "runtime/collectives/framework/registry.h"
#include "tests/simulated/scenario.h"
#include "tools/ibcoll_sim/options.h"
#include "tools/ibcoll_sim/run.h"

namespace ibcoll {
namespace {

// One call on all ranks of the job, of which rank `late` comes when the others wait for it.
std::vector<std::unique_ptr<Request>> run_checked(SimJob& job, int team, CollectiveCase& call,
                                                  const Algorithm& algorithm, const Shape& shape, int late) {
  const uint64_t parameter = algorithm.choose ? algorithm.choose(shape, CostModel()) : 0;
  std::vector<std::unique_ptr<Request>> requests;
  for (int rank = 0; rank < shape.p; ++rank) {
    requests.push_back(make_request(job.team(team, rank), call, algorithm, parameter));
    SimStep step;
    step.request = requests.back().get();
    step.delay_ns = rank == late ? 1'000'000'000 : 0;
    step.before_start = [&call, rank] { call.at(rank).fill(0); };
    step.completed = [&call, rank](const Status&) { EXPECT_EQ(call.at(rank).check(0), "") << "rank " << rank; };
    job.add_step(rank, std::move(step));
  }
  const Status status = job.run();
  EXPECT_TRUE(status.ok()) << status.text();
  return requests;
}

class LongVectors : public ::testing::TestWithParam<const Algorithm*> {};

// Several pieces, the last one short; the scratch of a rank holds some pieces, not the vector again. The root comes
// late, when the others may have used all their scratch.
TEST_P(LongVectors, PassInPieces) {
  const Algorithm& algorithm = *GetParam();
  constexpr int p = 3;
  SimJobParams job_params;
  job_params.network.ranks = p;
  job_params.network.node_of = {0, 0, 1};
  job_params.network.slot_bytes = 1 << 16;
  job_params.window_area_bytes = 1 << 18;
  job_params.lazy = 0;  // the others run until they need the root
  SimJob job(job_params);
  const int team = job.make_world();
  CallParams params;
  params.collective = algorithm.collective;
  params.p = p;
  params.type = IBCOLL_UINT32;
  params.op = IBCOLL_SUM;
  params.root = 1;
  params.count = (3 * kReductionPiece + 4000) / sizeof(uint32_t);
  CollectiveCase call(params, 5);
  const Shape shape = shape_of(job, team, call, sim::Reads::kNone, job_params.window_area_bytes);
  for (const auto& request : run_checked(job, team, call, algorithm, shape, params.root))
    EXPECT_LT(request->exchange().arena().bytes(), 3 * kReductionPiece);
}

// The algorithms between nodes, but for linear reduce, which is for short vectors.
std::vector<const Algorithm*> of_one_vector() {
  Shape shape;
  shape.p = 3, shape.nodes = 2, shape.most_local = 2, shape.area_bytes = 1 << 18;
  std::vector<const Algorithm*> some;
  for (const Algorithm* const a : algorithms()) {
    const bool linear = a->collective == IBCOLL_REDUCE && std::string(a->name) == "linear";
    if ((a->collective == IBCOLL_ALLREDUCE || a->collective == IBCOLL_REDUCE) && !linear && !a->why_not(shape))
      some.push_back(a);
  }
  return some;
}

INSTANTIATE_TEST_SUITE_P(Registry, LongVectors, ::testing::ValuesIn(of_one_vector()), [](const auto& info) {
  return std::string(ibcoll_collective_name(info.param->collective)) + "_" + info.param->name;
});

// Operands of several pieces that are combined as they land, and a last piece that is short.
TEST(LongOperands, AreCombinedAsTheyLand) {
  constexpr uint64_t kBytes = 2 * kCombinedPiece + 808;
  for (const ibcoll_collective_t collective :
       {IBCOLL_ALLREDUCE, IBCOLL_REDUCE, IBCOLL_REDUCE_SCATTER, IBCOLL_REDUCE_SCATTER_BLOCK})
    for (const int ranks : {2, 3, 4, 6}) {
      simulator::Options options;
      options.collective = &kCatalog[collective];
      options.algorithms = {"all"};
      options.ranks = options.nodes = ranks;
      options.check = true;
      std::vector<simulator::Row> rows;
      const Status status = simulator::run_size(options, kBytes, nullptr, rows);
      ASSERT_TRUE(status.ok()) << status.text();
      ASSERT_GE(rows.size(), 5u);
      for (const simulator::Row& row : rows)
        EXPECT_EQ(row.errors, 0u) << options.collective->name << " " << row.algorithm << ", " << ranks << " ranks";
    }
}

// In place, and with blocks of different sizes, one of them empty.
TEST(LongOperands, AreCombinedInPlaceAndWithUnevenBlocks) {
  constexpr uint64_t kBytes = 2 * kCombinedPiece + 808;
  int runs = 0;
  for (const int p : {2, 3, 4})
    for (const Algorithm* const algorithm : algorithms()) {
      const ibcoll_collective_t c = algorithm->collective;
      if (c != IBCOLL_ALLREDUCE && c != IBCOLL_REDUCE && c != IBCOLL_REDUCE_SCATTER && c != IBCOLL_REDUCE_SCATTER_BLOCK)
        continue;
      SimJobParams job_params;
      job_params.network.ranks = p;
      job_params.network.slot_bytes = 1 << 14;
      job_params.window_area_bytes = 1 << 18;
      for (int rank = 0; rank < p; ++rank) job_params.network.node_of.push_back(rank);
      SimJob job(job_params);
      const int team = job.make_world();
      CallParams params;
      params.collective = c;
      params.p = p;
      params.type = IBCOLL_UINT32;
      params.op = IBCOLL_SUM;
      params.in_place = true;
      params.count = kBytes / sizeof(uint32_t);
      for (int i = 0; i < p && c == IBCOLL_REDUCE_SCATTER; ++i) params.counts.push_back(i == 1 ? 0 : kBytes << (i % 2));
      CollectiveCase call(params, 5);
      const Shape shape = shape_of(job, team, call, sim::Reads::kNone, job_params.window_area_bytes);
      if (algorithm->why_not(shape)) continue;
      SCOPED_TRACE(std::string(ibcoll_collective_name(c)) + " " + algorithm->name + ", " + std::to_string(p) +
                   " ranks");
      run_checked(job, team, call, *algorithm, shape, /*late=*/0);
      ++runs;
    }
  EXPECT_GT(runs, 40);
}

// Rank 1 combines a piece where it did for the one before, which rank 2 may not have asked for yet.
TEST(LongOperands, OfAnExscanWhoseLastRankIsLate) {
  SimJobParams job_params;
  job_params.network.ranks = 3;
  job_params.limits.spill_bytes = 1 << 16;
  job_params.lazy = 0;
  SimJob job(job_params);
  const int team = job.make_world();
  CallParams params;
  params.collective = IBCOLL_EXSCAN;
  params.p = 3;
  params.type = IBCOLL_UINT32;
  params.op = IBCOLL_SUM;
  params.count = 100'000;
  CollectiveCase call(params, 5);
  const Shape shape = shape_of(job, team, call, sim::Reads::kNone, job_params.window_area_bytes);
  run_checked(job, team, call, *find_algorithm(IBCOLL_EXSCAN, "linear"), shape, /*late=*/2);
}

// Areas of the node window that end within an element, on one node and on two.
TEST(LongOperands, PassAreasThatEndWithinAnElement) {
  int runs = 0;
  for (const std::vector<int>& nodes : {std::vector<int>{0, 0, 0, 0}, {0, 0, 0, 1, 1}})
    for (const Algorithm* const algorithm : algorithms()) {
      if (!kCatalog[algorithm->collective].reduces() || !algorithm->uses_window) continue;
      SimJobParams job_params;
      job_params.network.ranks = static_cast<int>(nodes.size());
      job_params.network.node_of = nodes;
      job_params.window_area_bytes = 1000;
      SimJob job(job_params);
      const int team = job.make_world();
      CallParams params;
      params.collective = algorithm->collective;
      params.p = static_cast<int>(nodes.size());
      params.type = IBCOLL_COMPLEX_DOUBLE;
      params.op = IBCOLL_SUM;
      params.count = 200;
      if (params.collective == IBCOLL_REDUCE_SCATTER) params.counts.assign(nodes.size(), 200 * 16);
      CollectiveCase call(params, 5);
      const Shape shape = shape_of(job, team, call, sim::Reads::kNone, job_params.window_area_bytes);
      if (algorithm->why_not(shape)) continue;
      SCOPED_TRACE(std::string(ibcoll_collective_name(params.collective)) + " " + algorithm->name);
      run_checked(job, team, call, *algorithm, shape, /*late=*/0);
      ++runs;
    }
  EXPECT_GT(runs, 15);
}

}  // namespace
}  // namespace ibcoll
