// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_sim/run.h"

#include <algorithm>

#include "runtime/collectives/framework/arguments.h"
#include "tools/ibcoll_sim/model.h"

namespace ibcoll::simulator {

Run::Run(const Options& options, const oracle::CallParams& params, const Choice& choice, double predicted_us,
         OutputFile* trace)
    : options_(options),
      calls_(params, options.check),
      watch_(predicted_us),
      job_(watched(job_params(options, calls_.nothing()))),
      ledger_(job_.network(), trace),
      choice_(choice),
      ended_(static_cast<size_t>(options.ranks), 0) {
  job_.network().watch(&ledger_);
}

SimJobParams Run::watched(SimJobParams params) {
  params.watch = [this](SimJob& job) { return watch_.look(job); };
  return params;
}

Status Run::make_requests() {
  if (!calls_.status().ok()) return calls_.status();
  const int team = job_.make_world();
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
    requests_[static_cast<size_t>(rank)].reset();  // its memory serves other ranks
  };
  job_.add_step(rank, std::move(step));
}

Status Run::run() {
  Status status = make_requests();
  if (status.ok()) status = job_.run();
  if (status.ok()) status = failure_;
  for (const auto& request : requests_)
    if (request && request->in_flight()) request->end(status);
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

}  // namespace ibcoll::simulator
