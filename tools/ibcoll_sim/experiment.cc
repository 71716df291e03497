// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_sim/experiment.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <numeric>

#include "runtime/collectives/framework/arguments.h"
#include "runtime/collectives/framework/registry.h"
#include "runtime/collectives/framework/select.h"
#include "tools/ibcoll_sim/calls.h"
#include "tools/ibcoll_sim/model.h"

namespace ibcoll::simulator {
namespace {

// One algorithm on all ranks.
class Run {
 public:
  Run(const Options& options, const oracle::CallParams& params, const Choice& choice, std::FILE* trace)
      : options_(options),
        calls_(params, options.check),
        job_(job_params(options, calls_.nothing())),
        ledger_(job_.network(), trace),
        choice_(choice),
        ended_(static_cast<size_t>(options.ranks), 0) {
    job_.network().watch(&ledger_);
  }

  Status run();
  void fill(Row& row) const;

 private:
  Status make_requests();
  void add_step(int rank);

  const Options& options_;
  Calls calls_;
  SimJob job_;
  Ledger ledger_;
  Choice choice_;
  std::vector<std::unique_ptr<Request>> requests_;
  std::vector<Time> ended_;
  Status failure_;
};

Status Run::make_requests() {
  if (!calls_.status().ok()) return calls_.status();
  std::vector<int> all(static_cast<size_t>(options_.ranks));
  std::iota(all.begin(), all.end(), 0);
  const int team = job_.make_team(all);
  uint32_t signature = 0;
  for (int rank = 0; rank < options_.ranks; ++rank) {
    Result<Args> args = calls_.args(rank);
    if (!args.ok()) return args.status();
    if (rank == 0) signature = call_signature(*args, choice_.name(), options_.scheme, options_.ranks);
    requests_.push_back(
        std::make_unique<Request>(job_.team(team, rank), args.value(), choice_, options_.scheme, signature));
    if (options_.check) requests_.back()->hold_counts();
    add_step(rank);
  }
  return {};
}

void Run::add_step(int rank) {
  SimStep step;
  step.request = requests_.back().get();
  step.delay_ns = options_.arrival.of(rank);
  step.before_start = [this, rank] {
    ledger_.starts(rank, job_.network().now());
    if (options_.check) calls_.fill(rank);
  };
  step.completed = [this, rank](const Status& status) {
    ended_[static_cast<size_t>(rank)] = job_.time_of(rank);
    ledger_.ends(rank, job_.time_of(rank));
    if (failure_.ok()) failure_ = status;
  };
  job_.add_step(rank, std::move(step));
}

Status Run::run() {
  Status status = make_requests();
  if (status.ok()) status = job_.run();
  if (status.ok()) status = failure_;
  for (const auto& request : requests_)
    if (request->in_flight()) request->end(status);
  return status;
}

void Run::fill(Row& row) const {
  Time in_call = 0;
  for (int rank = 0; rank < options_.ranks; ++rank)
    in_call += ended_[static_cast<size_t>(rank)] - options_.arrival.of(rank);
  row.time_us = static_cast<double>(*std::max_element(ended_.begin(), ended_.end())) / 1000;
  row.mean_us = static_cast<double>(in_call) / 1000 / options_.ranks;
  row.rounds = ledger_.rounds();
  row.between_nodes = ledger_.between_nodes();
  row.within_nodes = ledger_.within_nodes();
  row.control_messages = ledger_.control_messages();
  for (int rank = 0; options_.check && rank < options_.ranks; ++rank) {
    const oracle::Damage damage = calls_.damage(rank);
    row.errors += damage.bytes;
    if (row.damage.empty()) row.damage = damage.text;
  }
}

struct Candidate {
  Choice choice;
  const char* why_not = nullptr;
};

// Forced by the command line, as select() understands it.
Result<Forced> forced_by(const Options& options, const std::string& name) {
  Result<std::vector<ForcedEntry>> entries =
      parse_forced(options.collective->id, name, "--algorithm", IBCOLL_ERR_INVALID_ARGUMENT);
  if (!entries.ok()) return entries.status();
  return Forced{std::move(entries.value()), "--algorithm"};
}

Result<std::vector<Candidate>> candidates(const Options& options, const Shape& shape, const CostModel& model) {
  std::vector<Candidate> all;
  if (options.algorithms.front() == "all") {
    for (const Algorithm* const a : algorithms()) {
      if (a->collective != options.collective->id) continue;
      const char* const why = a->why_not(shape);
      all.push_back({{a, !why && a->choose ? a->choose(shape, model) : 0}, why});
    }
    return all;
  }
  for (const std::string& name : options.algorithms) {
    Result<Forced> forced = forced_by(options, name);
    if (!forced.ok()) return forced.status();
    const Result<Choice> choice = select(options.collective->id, shape, model, forced.value());
    if (!choice.ok()) return choice.status();
    all.push_back({choice.value()});
  }
  return all;
}

void write_heading(const Options& options, uint64_t bytes, const Row& row, std::FILE* trace) {
  if (!trace) return;
  fmt::print(trace,
             R"({{"event": "run", "collective": "{}", "algorithm": "{}", "bytes": {}, "ranks": {}, "nodes": {}}})"
             "\n",
             options.collective->name, row.algorithm, bytes, options.ranks, options.nodes);
}

}  // namespace

Result<std::vector<Row>> run_size(const Options& options, uint64_t bytes, std::FILE* trace) {
  const oracle::CallParams params = call_params(options, bytes);
  if (Status status = Calls::possible(params, options.check); !status.ok()) return status;
  const Shape shape = shape_of(options, params);
  const CostModel model = cost_model(options);
  const Result<Choice> selected = select(params.collective, shape, model, {});
  if (!selected.ok()) return selected.status();
  Result<std::vector<Candidate>> chosen = candidates(options, shape, model);
  if (!chosen.ok()) return chosen.status();
  std::vector<Row> rows;
  for (const Candidate& candidate : *chosen) {
    Row row;
    row.bytes = bytes;
    row.algorithm = candidate.choice.name();
    if (candidate.why_not) {
      row.why_not = candidate.why_not;
    } else {
      row.selected = row.algorithm == selected.value().name();
      row.predicted_us = cost_us(candidate.choice, shape, model);
      write_heading(options, bytes, row, trace);
      Run run(options, params, candidate.choice, trace);
      if (Status status = run.run(); !status.ok())
        return error(status.code(), "{} ({}), {} bytes: {}", options.collective->name, row.algorithm, bytes,
                     status.text());
      run.fill(row);
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace ibcoll::simulator
