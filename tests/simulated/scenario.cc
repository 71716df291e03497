// SPDX-License-Identifier: BSD-3-Clause
#include "tests/simulated/scenario.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "runtime/base/hash.h"
#include "runtime/collectives/framework/arguments.h"
#include "runtime/collectives/framework/registry.h"

namespace ibcoll {
namespace {

// For calls to which a forced algorithm applies.
constexpr int kMostTries = 32;

template <typename T, size_t n>
T one_of(sim::Random& random, const T (&values)[n]) {
  return values[random.below(n)];
}

std::vector<int> random_nodes(sim::Random& random, int p) {
  std::vector<int> nodes(static_cast<size_t>(p), 0);
  const int count = 1 + static_cast<int>(random.below(static_cast<uint64_t>(std::min(p, 6))));
  const uint64_t kind = random.below(4);  // one node, blocks, cyclic, random
  const int block = (p + count - 1) / count;
  for (int rank = 0; rank < p; ++rank) {
    int& node = nodes[static_cast<size_t>(rank)];
    if (kind == 1) node = rank / block;
    if (kind == 2) node = rank % count;
    if (kind == 3) node = static_cast<int>(random.below(static_cast<uint64_t>(count)));
  }
  return nodes;
}

std::vector<int> all_ranks(int p) {
  std::vector<int> all(static_cast<size_t>(p));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

Shape shape_on(Shape shape, const Placement& placement, bool reads, uint64_t area_bytes) {
  shape.p = placement.size();
  shape.nodes = placement.node_count();
  shape.fewest_local = placement.fewest_local();
  shape.most_local = placement.most_local();
  shape.nodes_in_rank_order = placement.in_rank_order();
  shape.area_bytes = placement.most_local() > 1 ? area_bytes : 0;
  shape.single_copy = shape.p > 1 && shape.nodes == 1 && reads;
  return shape;
}

bool applies(const Algorithm& algorithm, int p, const SimJobParams& job) {
  Shape shape;
  shape.element_bytes = 16;  // as most types have at most
  return !algorithm.why_not(shape_on(shape, Placement(all_ranks(p), job.network.node_of), job.reads == sim::Reads::kAll,
                                     job.window_area_bytes));
}

// The requests of one run.
class Scenario {
 public:
  explicit Scenario(const ScenarioParams& params);
  ScenarioResult run();

 private:
  struct Call {
    int team;
    const Algorithm* algorithm;
    std::unique_ptr<CollectiveCase> buffers;
    std::vector<std::unique_ptr<Request>> requests;  // by team rank
  };

  void make_teams();
  bool make_call();
  const Algorithm* choose_algorithm(const Shape& shape, ibcoll_collective_t collective);
  uint64_t choose_parameter(const Algorithm& algorithm, const Shape& shape);
  void plan(int rounds);
  void add_step(Call& call, int rank, uint64_t round, Time delay, bool after_all);
  void check_end();
  void check_failed_teams();
  void fail(std::string text);

  ScenarioParams params_;
  sim::Random random_;
  int p_;
  SimJobParams job_params_;
  SimJob job_;
  std::vector<int> team_numbers_;
  std::vector<std::unique_ptr<Call>> calls_;
  std::string failure_;
  uint64_t failed_ = 0;
};

// Each algorithm and number of ranks has scenarios of its own: few seeds see many layouts.
uint64_t seed_of(const ScenarioParams& params) {
  Digest digest;
  digest.add(params.seed).add(static_cast<uint64_t>(params.p));
  if (params.algorithm) digest.add(static_cast<uint64_t>(params.algorithm->collective)).add(params.algorithm->name);
  return digest.value();
}

Scenario::Scenario(const ScenarioParams& params)
    : params_(params),
      random_(seed_of(params)),
      p_(params.p ? params.p : random_p(random_)),
      job_params_(random_job(random_, p_, params.algorithm)),
      job_((job_params_.network.detection = params.detection, job_params_.network.report_to_all = params.report_to_all,
            job_params_)) {
  make_teams();
}

void Scenario::make_teams() {
  std::vector<int> all = all_ranks(p_);
  team_numbers_.push_back(job_.make_team(all));
  if (!random_.one_in(3)) return;
  for (size_t i = all.size(); i > 1; --i) std::swap(all[i - 1], all[random_.below(i)]);
  all.resize(1 + random_.below(all.size()));
  team_numbers_.push_back(job_.make_team(all));
}

bool Scenario::make_call() {
  auto call = std::make_unique<Call>();
  call->team = team_numbers_[random_.below(team_numbers_.size())];
  const int p = job_.team_size(call->team);
  const auto collective =
      params_.algorithm ? params_.algorithm->collective : static_cast<ibcoll_collective_t>(random_.below(kCollectives));
  const uint64_t most = p <= 6 ? 20000 : p <= 16 ? 2000 : p <= 40 ? 300 : 60;
  const std::vector<uint64_t> edges{job_params_.limits.eager_bytes, job_params_.window_area_bytes,
                                    NodeWindow::kInlineBytes, job_params_.network.slot_bytes, 16384};
  call->buffers = std::make_unique<CollectiveCase>(random_case(random_, collective, p, most, edges), random_.next());
  const Shape shape = shape_of(job_, call->team, *call->buffers, job_params_.reads, job_params_.window_area_bytes);
  call->algorithm = choose_algorithm(shape, collective);
  if (!call->algorithm) return false;
  const uint64_t parameter = choose_parameter(*call->algorithm, shape);
  const bool fixed_order = call->buffers->params().row().reduces() && random_.one_in(3);
  for (int rank = 0; rank < p; ++rank) {
    call->requests.push_back(
        make_request(job_.team(call->team, rank), *call->buffers, *call->algorithm, parameter, fixed_order));
    if (!call->requests.back()) return false;
  }
  calls_.push_back(std::move(call));
  return true;
}

const Algorithm* Scenario::choose_algorithm(const Shape& shape, ibcoll_collective_t collective) {
  if (params_.algorithm) return params_.algorithm->why_not(shape) ? nullptr : params_.algorithm;
  std::vector<const Algorithm*> applicable;
  for (const Algorithm* const a : algorithms()) {
    if (a->collective == collective && !a->why_not(shape)) applicable.push_back(a);
  }
  return applicable[random_.below(applicable.size())];
}

// The parameter that the algorithm would choose, or any that it takes, small ones more often.
uint64_t Scenario::choose_parameter(const Algorithm& algorithm, const Shape& shape) {
  const Parameter& parameter = algorithm.parameter;
  if (parameter.unit == Parameter::Unit::kNone) return 0;
  if (algorithm.choose && random_.one_in(3)) return algorithm.choose(shape, CostModel());
  const uint64_t most = std::min(parameter.most, parameter.least + random_.below(uint64_t{1} << random_.below(16)));
  return parameter.least + random_.below(most - parameter.least + 1);
}

// All ranks start the calls in the same order, each in its own time, with waits in between or not.
void Scenario::plan(int rounds) {
  for (int round = 0; round < rounds; ++round) {
    const std::vector<Time> arrivals = random_arrivals(random_, p_);
    for (size_t i = 0; i < calls_.size(); ++i) {
      Call& call = *calls_[i];
      for (int rank = 0; rank < job_.team_size(call.team); ++rank) {
        const Time delay = i == 0 ? arrivals[static_cast<size_t>(job_.job_rank(call.team, rank))]
                                  : random_.below(job_params_.network.between_nodes.alpha_ns);
        add_step(call, rank, static_cast<uint64_t>(round), delay, round > 0 || random_.one_in(3));
      }
    }
  }
}

void Scenario::add_step(Call& call, int rank, uint64_t round, Time delay, bool after_all) {
  SimStep step;
  step.request = call.requests[static_cast<size_t>(rank)].get();
  step.delay_ns = delay;
  step.after_all = after_all;
  CollectiveCase* const buffers = call.buffers.get();
  step.before_start = [=] { buffers->at(rank).fill(round); };
  step.completed = [=, this](const Status& status) {
    const bool expected = params_.kill >= 0 && status.code() == IBCOLL_ERR_PEER_FAILED;
    if (status.ok()) {
      fail(buffers->at(rank).check(round));
    } else if (!expected) {
      fail(fmt::format("rank {}: {}", rank, status.text()));
    } else {
      ++failed_;
    }
    buffers->at(rank).scribble();
  };
  job_.add_step(job_.job_rank(call.team, rank), std::move(step));
}

void Scenario::fail(std::string text) {
  if (failure_.empty() && !text.empty()) failure_ = std::move(text);
}

void Scenario::check_end() {
  job_.drain();
  for (const auto& call : calls_) {
    for (int rank = 0; rank < job_.team_size(call->team); ++rank) {
      if (job_.network().alive(job_.job_rank(call->team, rank))) fail(call->buffers->at(rank).check_scribbled());
    }
  }
  for (int rank = 0; rank < p_; ++rank) {
    const size_t regions = job_.network().transport(rank).exposed_regions();
    if (regions && rank != params_.kill) fail(fmt::format("rank {}: {} regions are still exposed", rank, regions));
  }
  if (params_.kill >= 0) return check_failed_teams();
  const uint64_t dropped = job_.network().counters().dropped_puts;
  if (dropped) fail(fmt::format("{} puts went to memory that was not exposed", dropped));
}

// All ranks that share a team with the dead rank know.
void Scenario::check_failed_teams() {
  for (const int team : team_numbers_) {
    bool concerned = false;
    for (int rank = 0; rank < job_.team_size(team); ++rank) concerned |= job_.job_rank(team, rank) == params_.kill;
    for (int rank = 0; rank < job_.team_size(team); ++rank) {
      if (job_.job_rank(team, rank) == params_.kill) continue;
      const ibcoll_status_t code = job_.team(team, rank).failure().code();
      const bool right = concerned ? code == IBCOLL_ERR_PEER_FAILED : code == IBCOLL_OK;
      if (!right && job_params_.network.report_to_all) {
        fail(fmt::format("rank {} of team {} ended with status {}", rank, team, static_cast<int>(code)));
      }
    }
  }
}

ScenarioResult Scenario::run() {
  const int calls = 1 + static_cast<int>(random_.below(static_cast<uint64_t>(params_.most_requests)));
  for (int i = 0, tries = 0; i < calls && tries < kMostTries; ++tries) i += make_call();
  plan(1 + static_cast<int>(random_.below(static_cast<uint64_t>(params_.most_rounds))));
  if (params_.kill >= 0) job_.network().kill(params_.kill, params_.kill_at);
  if (const Status status = job_.run(); !status.ok()) fail(status.text());
  if (failure_.empty()) check_end();
  std::string calls_text;
  for (const auto& call : calls_) {
    calls_text +=
        fmt::format("\n  {} on team {}: {}", call->algorithm->name, call->team, call->buffers->params().describe());
  }
  sim::Network& network = job_.network();
  return {failure_.empty() ? "" : failure_ + calls_text,
          network.trace_hash(),
          network.now(),
          job_.passes(),
          calls_.size(),
          failed_,
          network.counters()};
}

}  // namespace

int random_p(sim::Random& random) {
  const uint64_t kind = random.below(8);
  if (kind == 0) return 1 + static_cast<int>(random.below(3));
  if (kind == 1) return 20 + static_cast<int>(random.below(21));
  return 2 + static_cast<int>(random.below(15));
}

SimJobParams random_job(sim::Random& random, int p, const Algorithm* algorithm) {
  SimJobParams job;
  job.network.ranks = p;
  job.network.seed = random.next();
  job.network.node_of = random.one_in(3) ? std::vector<int>(static_cast<size_t>(p), 0) : random_nodes(random, p);
  job.network.between_nodes.jitter_ns = one_of<Time>(random, {0, 100, 10000});
  job.network.within_node.jitter_ns = one_of<Time>(random, {0, 100, 3000});
  job.network.slots_per_pair = one_of<uint32_t>(random, {1, 2, 3, 16});
  job.network.puts_per_pair = one_of<uint32_t>(random, {1, 2, 16});
  job.network.refuse_permille = one_of<uint32_t>(random, {0, 0, 20, 300});
  job.network.hide_permille = one_of<uint32_t>(random, {0, 0, 100, 1000});
  job.limits.eager_bytes = one_of<uint64_t>(random, {0, 1, 32, 300, 4096});
  job.limits.eager_ahead = one_of<uint32_t>(random, {2, 4, 32});
  job.limits.collectives_ahead = one_of<uint32_t>(random, {1, 2, 5, 16, 128});
  job.limits.bytes_ahead = one_of<uint64_t>(random, {1, 5000, 1 << 19});
  job.reads = one_of<sim::Reads>(random, {sim::Reads::kAll, sim::Reads::kNone, sim::Reads::kSomePairs});
  job.window_area_bytes = one_of<uint64_t>(random, {64, 512, 4096, 65536});
  // Provides what the algorithm needs: other nodes, reads, a larger window.
  constexpr uint64_t kMostArea = 1 << 22;
  while (algorithm && !applies(*algorithm, p, job)) {
    if (job.reads != sim::Reads::kAll) {
      job.reads = sim::Reads::kAll;
    } else if (job.window_area_bytes < kMostArea) {
      job.window_area_bytes *= 2;
    } else {
      job.network.node_of = random.one_in(2) ? std::vector<int>(static_cast<size_t>(p), 0) : random_nodes(random, p);
      job.window_area_bytes = one_of<uint64_t>(random, {64, 512, 4096, 65536});
    }
  }
  job.crowded = random.one_in(2);
  job.lazy = one_of<uint64_t>(random, {0, 2, 8});
  job.blocks.read_from = one_of<uint64_t>(random, {8, 500, 32768});
  job.blocks.stream_from = one_of<uint64_t>(random, {0, 8, 1000, 32768});
  job.blocks.stream_to = one_of<uint64_t>(random, {0, 2000, 1 << 30});
  return job;
}

bool applies(const Algorithm& algorithm, int p) {
  const auto on = [&](int nodes) {
    std::vector<int> node_of(static_cast<size_t>(p));
    for (int rank = 0; rank < p; ++rank) node_of[static_cast<size_t>(rank)] = rank % nodes;
    return !algorithm.why_not(shape_on({}, Placement(all_ranks(p), node_of), true, uint64_t{1} << 20));
  };
  return on(1) || on(2);
}

std::vector<Time> random_arrivals(sim::Random& random, int p) {
  std::vector<Time> arrivals(static_cast<size_t>(p), 0);
  const uint64_t kind = random.below(3);
  const Time scale = one_of<Time>(random, {1000, 20000, 500000});
  if (kind == 1) {
    for (Time& arrival : arrivals) arrival = random.below(scale);
  } else if (kind == 2) {
    const uint64_t late = 1 + random.below(static_cast<uint64_t>(p));
    for (uint64_t i = 0; i < late; ++i) arrivals[random.below(arrivals.size())] = scale;
  }
  return arrivals;
}

Shape shape_of(SimJob& job, int team, CollectiveCase& call, sim::Reads reads, uint64_t area_bytes) {
  return shape_on(call.shape(), job.placement(team), reads == sim::Reads::kAll, area_bytes);
}

std::unique_ptr<Request> make_request(Team& team, CollectiveCase& call, const Algorithm& algorithm, uint64_t parameter,
                                      bool fixed_order) {
  Result<Args> args = call.args(team.rank());
  EXPECT_TRUE(args.ok()) << args.status().text();
  if (!args.ok()) return nullptr;
  args.value().fixed_order = fixed_order;
  const ibcoll_scheme_t scheme = call.params().scheme;
  if (parameter == 0 && algorithm.choose) parameter = algorithm.choose(call.shape(), CostModel());
  const Choice choice{&algorithm, parameter};
  auto request = std::make_unique<Request>(team, args.value(), choice, scheme,
                                           call_signature(args.value(), choice.name(), scheme, team.size()));
  request->hold_counts();
  return request;
}

ScenarioResult run_scenario(const ScenarioParams& params) { return Scenario(params).run(); }

}  // namespace ibcoll
