// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_sim/experiment.h"

#include <fmt/format.h>

#include "runtime/collectives/framework/registry.h"
#include "runtime/collectives/framework/select.h"
#include "tools/ibcoll_sim/calls.h"
#include "tools/ibcoll_sim/model.h"
#include "tools/ibcoll_sim/run.h"
#include "tools/ibcoll_sim/watch.h"

namespace ibcoll::simulator {
namespace {

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

Result<Shape> shape_of_call(const Options& options, const oracle::CallParams& params) {
  Calls calls(params, false);
  if (!calls.status().ok()) return calls.status();
  const Result<Args> args = calls.args(0);
  if (!args.ok()) return args.status();
  return shape_of(team_shape(options), args.value());
}

void write_heading(const Options& options, uint64_t bytes, const Row& row, OutputFile* trace) {
  if (!trace) return;
  trace->write(
      fmt::format(R"({{"event": "run", "collective": "{}", "algorithm": "{}", "bytes": {}, "ranks": {}, "nodes": {}}})"
                  "\n",
                  options.collective->name, row.algorithm, bytes, options.ranks, options.nodes));
}

}  // namespace

Status run_size(const Options& options, uint64_t bytes, OutputFile* trace, std::vector<Row>& rows) {
  const oracle::CallParams params = call_params(options, bytes);
  if (Status status = Calls::possible(params, options.check); !status.ok()) return status;
  if (Status status = fits(options.ranks, "the block sizes", Calls::list_bytes(params), memory_available());
      !status.ok())
    return status;
  const Result<Shape> known = shape_of_call(options, params);
  if (!known.ok()) return known.status();
  const Shape& shape = known.value();
  const CostModel model = cost_model(options);
  const Result<Choice> selected = select(params.collective, shape, model, {});
  if (!selected.ok()) return selected.status();
  Result<std::vector<Candidate>> chosen = candidates(options, shape, model);
  if (!chosen.ok()) return chosen.status();
  for (const Candidate& candidate : *chosen) {
    Row row;
    row.bytes = bytes;
    row.algorithm = candidate.choice.name();
    if (candidate.why_not) {
      row.why_not = candidate.why_not;
    } else {
      row.selected = row.algorithm == selected.value().name();
      row.predicted_us = cost_us(candidate.choice, shape, model);
      row.predicted_late_us = late_us(candidate.choice, shape, model);
      write_heading(options, bytes, row, trace);
      Run run(options, params, candidate.choice, row.predicted_us, trace);
      if (Status status = run.run(); !status.ok())
        return error(status.code(), "{} ({}), {} bytes: {}", options.collective->name, row.algorithm, bytes,
                     status.text());
      run.fill(row);
    }
    rows.push_back(std::move(row));
  }
  return {};
}

}  // namespace ibcoll::simulator
