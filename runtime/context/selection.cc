// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/context/selection.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "runtime/collectives/framework/registry.h"

namespace ibcoll {
namespace {

// The one of this name, or else the first.
const Candidate& candidate(const std::vector<Candidate>& all, const Tuning::Entry* timed) {
  if (!timed) return all.front();
  return *std::find_if(all.begin(), all.end(),
                       [timed](const Candidate& one) { return one.choice.algorithm->name == timed->algorithm; });
}

}  // namespace

Status Selection::read_settings(const Config& config, bool in_host) {
  for (const Collective& row : kCatalog) {
    const std::string name = algorithm_setting(row);
    const Config::Value& value = config.value(name);
    Result<std::vector<ForcedEntry>> entries =
        parse_forced(row.id, value.text, fmt::format("{} ({})", name, value.origin), IBCOLL_ERR_CONFIG);
    if (!entries.ok()) return entries.status();
    forced_[static_cast<size_t>(row.id)] = {std::move(entries.value()), name};
  }
  const std::string& scheme = config.text("IBCOLL_SCHEME");
  default_scheme_ = scheme == "copy"        ? IBCOLL_SCHEME_COPY
                    : scheme == "zero_copy" ? IBCOLL_SCHEME_ZERO_COPY
                                            : IBCOLL_SCHEME_AUTO;
  const std::string& overlap = config.text("IBCOLL_CHECK_OVERLAP");
  overlap_ = overlap == "off" || (overlap == "auto" && in_host) ? Overlap::kAllowed : Overlap::kRefused;
  const std::string& arrival = config.text("IBCOLL_ARRIVAL");
  weighing_ = arrival == "together" ? Weighing::kTogether : arrival == "late" ? Weighing::kLate : Weighing::kMixed;
  deterministic_ = config.boolean("IBCOLL_DETERMINISTIC");
  return {};
}

Result<Forced> Selection::forced(ibcoll_collective_t collective, const char* algorithm) const {
  const bool known = find_collective(collective) != nullptr;
  if (!known) return Forced{};
  if (!algorithm || !*algorithm) return forced_[collective];
  Result<std::vector<ForcedEntry>> entries = parse_forced(collective, algorithm, "the call", IBCOLL_ERR_NOT_APPLICABLE);
  if (!entries.ok()) return entries.status();
  return Forced{std::move(entries.value()), "the call"};
}

// What was timed at start differs from run to run, and the algorithm decides in which order operands are combined.
bool Selection::needs_steady_model(const Args& args) const noexcept {
  return deterministic_ && args.reduction.op && !args.reduction.exact();
}

// Of zero-copy messages none goes to a rank that is not there.
static CostModel model_for(ibcoll_scheme_t scheme, CostModel model) noexcept {
  if (scheme == IBCOLL_SCHEME_ZERO_COPY) model.eager_bytes = model.spill_bytes = 0;
  return model;
}

Result<std::vector<Candidate>> Selection::candidates_of(const TeamProfile& team, const Args& args, const Forced& forced,
                                                        ibcoll_scheme_t scheme, const Shape& shape) const {
  const CostModel model = model_for(scheme, team.model), steady = model_for(scheme, team.steady_model);
  return candidates(args.collective, shape, model, forced, needs_steady_model(args) ? &steady : nullptr, weighing_);
}

// nullptr: the file has no choice for such calls, or none that applies.
const Tuning::Entry* Selection::timed(const TeamProfile& team, const Args& args, ibcoll_scheme_t scheme,
                                      const Shape& shape, const std::vector<Candidate>& all) const {
  const bool own_operation = args.reduction.op && args.reduction.op->user_defined();  // each program has its own
  if (all.size() < 2 || tuning_.size() == 0 || args.internal || own_operation || !has_class(args, shape))
    return nullptr;
  const Tuning::Entry* const entry = tuning_.find(layout_of(team.shape), class_of(args, scheme, shape));
  const auto named = [entry](const Candidate& one) { return one.choice.algorithm->name == entry->algorithm; };
  return entry && std::any_of(all.begin(), all.end(), named) ? entry : nullptr;
}

Result<Choice> Selection::choose(const TeamProfile& team, Args& args, const Forced& forced,
                                 ibcoll_scheme_t scheme) const {
  args.fixed_order = deterministic_;
  const Shape shape = shape_of(team.shape, args);
  const Result<std::vector<Candidate>> all = candidates_of(team, args, forced, scheme, shape);
  if (!all.ok()) return all.status();
  return candidate(all.value(), timed(team, args, scheme, shape, all.value())).choice;
}

Result<std::string> Selection::explain(const TeamProfile& team, const Args& args, const Forced& forced,
                                       ibcoll_scheme_t scheme) const {
  const Shape shape = shape_of(team.shape, args);
  const Result<std::vector<Candidate>> all = candidates_of(team, args, forced, scheme, shape);
  if (!all.ok()) return all.status();
  Json decision =
      ibcoll::explain(args.collective, shape, model_for(scheme, team.model), forced, all.value(), weighing_);
  if (const Tuning::Entry* const entry = timed(team, args, scheme, shape, all.value())) {
    decision.set("algorithm", candidate(all.value(), entry).choice.name());
    decision.set("reason", fmt::format("read from the tuning file, timed in {} calls", entry->trials));
  }
  if (has_class(args, shape)) decision.set("class", Tuning::key(layout_of(team.shape), class_of(args, scheme, shape)));
  return decision.dump();
}

}  // namespace ibcoll
