// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/collectives/framework/select.h"

#include <fmt/format.h>

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

Result<const Algorithm*> find_forced(ibcoll_collective_t collective, const Shape& shape, Forced forced) {
  const Algorithm* const a = find_algorithm(collective, forced.name);
  const char* const why = a ? a->why_not(shape) : "there is no such algorithm";
  if (!why) return a;
  return error(IBCOLL_ERR_NOT_APPLICABLE, "{} algorithm '{}', demanded by {}: {}; these apply: {}",
               ibcoll_collective_name(collective), forced.name, forced.origin, why, applicable(collective, shape));
}

}  // namespace

Result<const Algorithm*> select(ibcoll_collective_t collective, const Shape& shape, const CostModel& model,
                                Forced forced) {
  if (!forced.name.empty()) return find_forced(collective, shape, forced);
  const Algorithm* best = nullptr;
  double lowest = 0;
  for (const Algorithm* const a : algorithms()) {
    if (a->collective != collective || a->why_not(shape)) continue;
    const double cost = a->cost_us(shape, model);
    if (best && cost >= lowest) continue;
    best = a;
    lowest = cost;
  }
  return best;  // every collective has an algorithm that applies always
}

Result<std::string> explain(ibcoll_collective_t collective, const Shape& shape, const CostModel& model, Forced forced) {
  const Result<const Algorithm*> selected = select(collective, shape, model, forced);
  if (!selected.ok()) return selected.status();
  if (!forced.name.empty()) return fmt::format("{}: demanded by {}", forced.name, forced.origin);
  std::string costs, others;
  for (const Algorithm* const a : algorithms()) {
    if (a->collective != collective) continue;
    if (const char* const why = a->why_not(shape))
      others += fmt::format("; not {}: {}", a->name, why);
    else
      costs += fmt::format("{}{} {:.2f} us", costs.empty() ? "" : ", ", a->name, a->cost_us(shape, model));
  }
  return fmt::format("{}: lowest predicted cost: {}{}", selected.value()->name, costs, others);
}

}  // namespace ibcoll
