// SPDX-License-Identifier: BSD-3-Clause
// Learning on simulated machines whose costs are not those that selection believes in, in virtual time.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <set>

#include "runtime/collectives/framework/arguments.h"
#include "runtime/collectives/framework/registry.h"
#include "runtime/sim/random.h"
#include "tools/ibcoll_sim/calls.h"
#include "tools/ibcoll_sim/job.h"
#include "tools/ibcoll_sim/model.h"

namespace ibcoll::simulator {
namespace {

struct Cell {
  ibcoll_collective_t collective;
  int ranks;
  int nodes;
  uint64_t bytes;
};

constexpr Cell kCells[] = {
    {IBCOLL_BARRIER, 6, 2, 0},
    {IBCOLL_ALLGATHER, 6, 6, 64},
    {IBCOLL_ALLGATHER, 4, 1, 65536},
    {IBCOLL_ALLTOALL, 6, 3, 256},
    {IBCOLL_ALLTOALL, 5, 5, 16384},
    {IBCOLL_ALLREDUCE, 6, 3, 1024},
    {IBCOLL_ALLREDUCE, 4, 4, 65536},
    {IBCOLL_ALLGATHER, 6, 2, 4096},
    {IBCOLL_ALLREDUCE, 5, 1, 8192},
    {IBCOLL_ALLGATHERV, 6, 6, 4096},
    {IBCOLL_REDUCE_SCATTER_BLOCK, 6, 3, 1024},
};

Options options_of(const Cell& cell) {
  Options options;
  options.collective = &kCatalog[cell.collective];
  options.ranks = cell.ranks;
  options.nodes = cell.nodes;
  return options;
}

using Delays = std::function<Time(int call, int rank)>;  // from the end of a rank's call to the start of its next one
Time at_once(int, int) { return 0; }

// `by_chance`: ranks notice deaths, which takes time in which nothing moves.
SimJobParams params_of(const Options& options, const Calls& calls, bool by_chance) {
  SimJobParams params = job_params(options, calls.nothing());
  params.network.random = by_chance;
  return params;
}

// Many calls of one cell, one after the other on each rank.
class CallsInARow {
 public:
  CallsInARow(const Cell& cell, int calls, Delays delays, bool by_chance = false)
      : options_(options_of(cell)),
        params_(call_params(options_, cell.bytes)),
        calls_(params_, false),
        job_(params_of(options_, calls_, by_chance)),
        count_(calls),
        delays_(std::move(delays)),
        arrived_(static_cast<size_t>(calls)),
        ended_(static_cast<size_t>(calls)) {
    team_ = job_.make_world();
    shape_ = shape_of(team_shape(options_), args(0));
  }
  ~CallsInARow() {
    for (const auto& request : requests_)
      if (request->in_flight()) request->end(error(IBCOLL_ERR_TIMEOUT, "the test ends"));
  }

  Args args(int rank) {
    const Result<Args> args = calls_.args(rank);
    EXPECT_TRUE(args.ok()) << args.status().text();
    return args.value();
  }
  // By cost, as a machine with these costs has it.
  std::vector<Candidate> candidates_by(const CostModel& model) const {
    const Result<std::vector<Candidate>> all = candidates(params_.collective, shape_, model, {});
    EXPECT_TRUE(all.ok());
    return all.value();
  }
  CostModel model() const { return cost_model(options_); }

  void force(const Choice& choice) {
    for (int rank = 0; rank < options_.ranks; ++rank) make_request(rank, choice);
  }
  void learn(const std::vector<Candidate>& all) {
    for (int rank = 0; rank < options_.ranks; ++rank) {
      Team& team = job_.team(team_, rank);
      team.learn({find_algorithm(IBCOLL_ALLREDUCE, "recursive_doubling")}, barrier());
      Selected selected(all.front().choice);
      selected.learned = &team.learning()->add(class_of(args(rank), IBCOLL_SCHEME_AUTO, shape_), all);
      selected.applicable = ~uint32_t{0};
      make_request(rank, selected);
    }
  }
  const LearnedClass& learned(int rank) { return job_.team(team_, rank).learning()->classes().front(); }
  SimJob& job() { return job_; }
  Request& request(int rank) { return *requests_[static_cast<size_t>(rank)]; }

  void run() {
    for (int call = 0; call < count_; ++call)
      for (int rank = 0; rank < options_.ranks; ++rank) add_step(call, rank);
    const Status status = job_.run();
    EXPECT_TRUE(status.ok()) << status.text();
  }
  Status status(int rank) const { return statuses_.contains(rank) ? statuses_.at(rank) : Status(); }
  // From the last arrival to the last exit, as a mean over the calls from `first` on, in microseconds.
  double us(int first) const {
    Time all = 0;
    for (auto i = static_cast<size_t>(first); i < ended_.size(); ++i) all += ended_[i] - arrived_[i];
    return static_cast<double>(all) / 1000 / (count_ - first);
  }

 private:
  const Algorithm& barrier() const {
    const char* const name = shape_.one_node() ? "shm" : shape_.most_local > 1 ? "leaders" : "dissemination";
    return *find_algorithm(IBCOLL_BARRIER, name);
  }
  void make_request(int rank, const Selected& selected) {
    const Args given = args(rank);
    requests_.push_back(std::make_unique<Request>(
        job_.team(team_, rank), given, selected, IBCOLL_SCHEME_AUTO,
        call_signature(given, selected.predicted.name(), IBCOLL_SCHEME_AUTO, options_.ranks)));
  }
  void add_step(int call, int rank) {
    SimStep step;
    step.request = requests_[static_cast<size_t>(rank)].get();
    step.delay_ns = delays_(call, rank);
    const auto at = [](std::vector<Time>& times, int i) -> Time& { return times[static_cast<size_t>(i)]; };
    step.before_start = [this, call, at] { at(arrived_, call) = std::max(at(arrived_, call), job_.network().now()); };
    step.completed = [this, call, rank, at](const Status& status) {
      at(ended_, call) = std::max(at(ended_, call), job_.time_of(rank));
      if (!status.ok()) statuses_[rank] = status;
    };
    job_.add_step(rank, std::move(step));
  }

  Options options_;
  oracle::CallParams params_;
  Calls calls_;
  SimJob job_;
  int count_;
  Delays delays_;
  std::vector<Time> arrived_, ended_;  // the last one of each call
  std::map<int, Status> statuses_;     // of ranks whose calls have failed
  int team_ = 0;
  Shape shape_;
  std::vector<std::unique_ptr<Request>> requests_;
};

// What each algorithm takes in a cell, measured when first asked for.
class Measured {
 public:
  Measured(const Cell& cell, Delays delays) : cell_(cell), delays_(std::move(delays)) {}

  double us(const Choice& choice) {
    const auto [at, is_new] = us_.try_emplace(choice.name(), 0.0);
    if (!is_new) return at->second;
    CallsInARow calls(cell_, kCalls, delays_);
    calls.force(choice);
    calls.run();
    return at->second = calls.us(kWarm);
  }
  // Of the registry, with the parameters that fit the machine.
  double best_us() {
    if (best_us_ > 0) return best_us_;
    best_us_ = 1e12;
    const CallsInARow calls(cell_, 0, at_once);
    for (const Candidate& candidate : calls.candidates_by(calls.model()))
      best_us_ = std::min(best_us_, us(candidate.choice));
    return best_us_;
  }

 private:
  static constexpr int kWarm = 2, kCalls = 10;
  const Cell cell_;
  const Delays delays_;
  double best_us_ = 0;
  std::map<std::string, double> us_;
};

// Each constant is wrong by a factor of its own, between 1/4 and 4.
CostModel falsified(CostModel model, uint64_t seed) {
  sim::Random random(seed);
  for (double* const constant :
       {&model.alpha_us, &model.beta_us, &model.copy_us, &model.streamed_copy_us, &model.own_cache_bytes,
        &model.cached_copy_us, &model.memory_us, &model.cache_bytes, &model.read_us, &model.read_us_per_byte,
        &model.flag_us, &model.cpu_us, &model.yield_us})
    *constant *= std::exp2(static_cast<double>(random.below(4001)) / 1000 - 2);
  return model;
}

// What is learned, the same on all ranks; calls the next `calls` calls.
Choice learned_choice(CallsInARow& calls, const Cell& cell, const std::vector<Candidate>& all) {
  calls.learn(all);
  calls.run();
  const LearnedClass& first = calls.learned(0);
  EXPECT_TRUE(first.learner.frozen());
  for (int rank = 1; rank < cell.ranks; ++rank) {
    EXPECT_EQ(calls.learned(rank).learner.chosen(), first.learner.chosen());
    EXPECT_EQ(calls.learned(rank).learner.frozen(), first.learner.frozen());
  }
  return first.candidates[static_cast<size_t>(first.learner.chosen())].choice;
}

std::string describe(const Cell& cell) {
  return std::string(kCatalog[cell.collective].name) + " " + std::to_string(cell.bytes) + " bytes, " +
         std::to_string(cell.ranks) + " ranks on " + std::to_string(cell.nodes) + " nodes";
}

void expect_near_best(const Cell& cell, uint64_t seed, const Delays& delays, Measured& measured, double& worst) {
  CallsInARow calls(cell, Learner::kMostCalls + 1, delays);
  const Choice chosen = learned_choice(calls, cell, calls.candidates_by(falsified(calls.model(), seed)));
  const double regret = measured.us(chosen) / measured.best_us();
  worst = std::max(worst, regret);
  EXPECT_LE(regret, 1.15) << describe(cell) << ", seed " << seed << ": " << chosen.name();
}

class LearningOfCell : public ::testing::TestWithParam<Cell> {};

TEST_P(LearningOfCell, FindsAboutTheBestOnMachinesNeverSeen) {
  constexpr uint64_t kSeeds = 200;
  double worst = 0;
  Measured measured(GetParam(), at_once);
  for (uint64_t seed = 0; seed < kSeeds; ++seed) expect_near_best(GetParam(), seed, at_once, measured, worst);
  RecordProperty("worst_regret", std::to_string(worst));
}

// Ranks come to each call as they like, up to 32 times what the call takes after another.
TEST_P(LearningOfCell, DoesNotChooseWorseBehindLateRanks) {
  const Cell& cell = GetParam();
  if (cell.collective == IBCOLL_BARRIER) GTEST_SKIP() << "every barrier ends when the last rank comes";
  const auto scale = static_cast<uint64_t>(32 * 1000 * Measured(cell, at_once).best_us());
  const Delays late = [scale](int call, int rank) {
    return sim::Random(static_cast<uint64_t>(call) * 1000 + static_cast<uint64_t>(rank)).below(scale);
  };
  double worst = 0;
  Measured measured(cell, late);
  for (uint64_t seed = 0; seed < 4; ++seed) expect_near_best(cell, seed, late, measured, worst);
  RecordProperty("worst_regret", std::to_string(worst));
}

INSTANTIATE_TEST_SUITE_P(Cells, LearningOfCell, ::testing::ValuesIn(kCells), [](const auto& info) {
  const Cell& cell = info.param;
  return fmt::format("{}_{}B_{}x{}", kCatalog[cell.collective].name, cell.bytes, cell.ranks, cell.nodes);
});

// A rank that is ahead starts calls before the merge has ended: they wait in line, and all ranks still choose alike.
TEST(Learning, RanksAheadOfTheMergeWaitInLine) {
  const Cell cell{IBCOLL_ALLGATHER, 5, 5, 64};
  for (int ahead = 0; ahead < cell.ranks; ++ahead) {
    CallsInARow calls(cell, Learner::kMostCalls + 1, [=](int call, int rank) {
      return rank == ahead ? Time{0} : static_cast<Time>(call % 7) * 50'000;
    });
    (void)learned_choice(calls, cell, calls.candidates_by(calls.model()));
  }
}

// Wherever a rank dies while the team learns, the calls of all others end with its failure.
TEST(Learning, ARankThatDiesWhileItLearnsEndsTheCallAsAnyOther) {
  const Cell cell{IBCOLL_ALLREDUCE, 4, 2, 256};
  CallsInARow whole(cell, Learner::kMostCalls + 1, at_once, true);
  (void)learned_choice(whole, cell, whole.candidates_by(whole.model()));
  const Time end = whole.job().network().now();
  constexpr int kTimes = 40;
  for (int i = 0; i < kTimes; ++i) {
    const int dies = i % cell.ranks;
    CallsInARow calls(cell, Learner::kMostCalls + 1, at_once, true);
    calls.learn(calls.candidates_by(calls.model()));
    calls.job().network().kill(dies, end * static_cast<Time>(i) / kTimes);
    calls.run();
    for (int rank = 0; rank < cell.ranks; ++rank) {
      if (rank == dies) continue;
      EXPECT_EQ(calls.status(rank).code(), IBCOLL_ERR_PEER_FAILED) << "rank " << rank << ", death " << i;
      EXPECT_FALSE(calls.request(rank).in_flight());
    }
  }
}

}  // namespace
}  // namespace ibcoll::simulator
