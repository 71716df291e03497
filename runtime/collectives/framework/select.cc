// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/collectives/framework/select.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "runtime/base/catalog.h"
#include "runtime/base/float_environment.h"
#include "runtime/collectives/framework/registry.h"

namespace ibcoll {
namespace {

std::string applicable(ibcoll_collective_t collective, const Shape& shape) {
  std::string names;
  for (const Algorithm* const a : algorithms())
    if (a->collective == collective && !a->why_not(shape))
      names += fmt::format("{}{}", names.empty() ? "" : ", ", a->name);
  return names;
}

constexpr const char* kOtherBits =
    "it combines operands in another order, and which order is chosen may not depend on what was timed "
    "(IBCOLL_DETERMINISTIC=no permits it)";

// On one rank, algorithms differ only in preparations that nothing uses: the first one of each collective is the
// simplest.
const char* reason_of(const Shape& shape, Weighing weighing) {
  return shape.p == 1                      ? "one rank: the simplest one"
         : weighing == Weighing::kTogether ? "lowest predicted cost"
         : weighing == Weighing::kLate     ? "lowest predicted cost with a late rank"
                                           : "lowest predicted cost, with and without a late rank";
}

// With the parameter that the algorithm chooses where none is given.
Choice completed(Choice choice, const Shape& shape, const CostModel& model) {
  if (choice.parameter == 0 && choice.algorithm->choose) choice.parameter = choice.algorithm->choose(shape, model);
  return choice;
}

void sort(std::vector<Candidate>& all, Weighing weighing) {
  double lowest = all.front().cost_us;
  for (const Candidate& one : all) lowest = std::min(lowest, one.cost_us);
  const auto near = [&](const Candidate& one) {
    return weighing != Weighing::kMixed || one.cost_us <= cost::kWorthLateRanks * lowest;
  };
  // As float: where predictions differ by rounding alone, the first one of the list comes first.
  const auto weight = [&](const Candidate& one) {
    return static_cast<float>(weighing == Weighing::kTogether ? one.cost_us
                              : weighing == Weighing::kLate   ? one.late_us
                                                              : one.cost_us * one.late_us);
  };
  std::stable_sort(all.begin(), all.end(), [&](const Candidate& a, const Candidate& b) {
    return near(a) != near(b) ? near(a) : weight(a) < weight(b);
  });
}

// The algorithms that apply, of one order if it is given, the best first. Every collective has one that applies always.
std::vector<Candidate> by_cost(ibcoll_collective_t collective, const Shape& shape, const CostModel& model,
                               Weighing weighing, std::optional<Order> order = {}) {
  std::vector<Candidate> all;
  for (const Algorithm* const a : algorithms()) {
    if (a->collective != collective || a->why_not(shape) || (order && a->order != *order)) continue;
    const Choice choice = completed({a, 0}, shape, model);
    all.push_back({choice, cost_us(choice, shape, model), late_us(choice, shape, model)});
    if (shape.p == 1) break;
  }
  sort(all, weighing);
  return all;
}

}  // namespace

Shape shape_of(Shape shape, const Args& args) {
  const Collective& row = kCatalog[args.collective];
  const auto p = static_cast<uint64_t>(shape.p);
  const bool p_blocks = row.send.extent == Extent::kBlocks || row.recv.extent == Extent::kBlocks;
  shape.bytes = row.irregular() ? 0 : args.bytes;
  shape.total = p_blocks ? shape.bytes * p : 0;
  const uint64_t* const counts = row.reduces() ? args.send.counts : args.recv.counts;
  shape.sizes_known = !row.irregular() || row.sizes == SizesKnown::kToAll;
  if (row.sizes == SizesKnown::kToAll) {
    for (uint64_t i = 0; i < p; ++i) {
      const uint64_t bytes = counts ? counts[i] : args.bytes;
      shape.bytes = std::max(shape.bytes, bytes);
      shape.total += bytes;
      shape.empty_blocks += bytes == 0;
    }
  }
  if (args.reduction.op) {
    shape.commutative = args.reduction.op->commutative;
    shape.element_bytes = args.reduction.element_bytes();
  }
  return shape;
}

double cost_us(const Choice& choice, Shape shape, const CostModel& model) {
  shape.parameter = choice.parameter;
  return choice.algorithm->cost_us(shape, model);
}

double late_us(const Choice& choice, Shape shape, const CostModel& model) {
  if (!choice.algorithm->late_us) return cost_us(choice, shape, model);
  shape.parameter = choice.parameter;
  return choice.algorithm->late_us(shape, model);
}

Result<std::vector<Candidate>> candidates(ibcoll_collective_t collective, Shape shape, const CostModel& model,
                                          const Forced& forced, const CostModel* steady, Weighing weighing) {
  const DefaultFloatEnvironment alike_on_all_ranks;
  if (!forced.entries.empty()) {
    const Choice choice = completed(entry_for(forced.entries, shape.bytes).choice, shape, model);
    shape.parameter = choice.parameter;
    const char* const why = choice.algorithm->why_not(shape);
    if (!why) return std::vector<Candidate>{{choice, cost_us(choice, shape, model), late_us(choice, shape, model)}};
    return error(IBCOLL_ERR_NOT_APPLICABLE, "{} algorithm '{}', demanded by {}: {}; these apply: {}",
                 kCatalog[collective].name, choice.algorithm->name, forced.origin, why, applicable(collective, shape));
  }
  if (!steady) return by_cost(collective, shape, model, weighing);
  const Candidate first = by_cost(collective, shape, *steady, weighing).front();
  if (first.choice.algorithm->order == Order::kOwn) return std::vector<Candidate>{first};
  return by_cost(collective, shape, model, weighing, first.choice.algorithm->order);
}

Result<Choice> select(ibcoll_collective_t collective, Shape shape, const CostModel& model, const Forced& forced,
                      const CostModel* steady, Weighing weighing) {
  const Result<std::vector<Candidate>> all = candidates(collective, shape, model, forced, steady, weighing);
  if (!all.ok()) return all.status();
  return all->front().choice;
}

Json explain(ibcoll_collective_t collective, Shape shape, const CostModel& model, const Forced& forced,
             const std::vector<Candidate>& all, Weighing weighing) {
  const DefaultFloatEnvironment alike_on_all_ranks;
  const bool one_order = forced.entries.empty() && shape.p > 1;
  const auto may_run = [&](const Algorithm* algorithm) {
    return std::any_of(all.begin(), all.end(), [=](const Candidate& one) { return one.choice.algorithm == algorithm; });
  };
  Json candidates = Json::list(), others = Json::list();
  for (const Algorithm* const a : algorithms()) {
    if (a->collective != collective) continue;
    if (const char* const why = a->why_not(shape)) {
      others.push_back({{"algorithm", a->name}, {"why", why}});
    } else if (one_order && !may_run(a)) {
      others.push_back({{"algorithm", a->name}, {"why", kOtherBits}});
    } else {
      const Choice choice = completed({a, 0}, shape, model);
      candidates.push_back({{"algorithm", choice.name()},
                            {"cost_us", cost_us(choice, shape, model)},
                            {"late_us", late_us(choice, shape, model)}});
    }
  }
  const std::string reason = forced.entries.empty() ? reason_of(shape, weighing) : "demanded by " + forced.origin;
  return Json{{"algorithm", all.front().choice.name()},
              {"predicted", all.front().choice.name()},
              {"reason", reason},
              {"candidates", candidates},
              {"not_applicable", others}};
}

}  // namespace ibcoll
