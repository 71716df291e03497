// SPDX-License-Identifier: BSD-3-Clause
// Which algorithm runs: the forced one, else the one with the lowest predicted cost when ranks arrive together, when one
// is late, or both; of one rank the simplest. The same on all ranks, because the shape and the model are.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/collectives/framework/algorithm.h"
#include "runtime/collectives/framework/forced.h"

namespace ibcoll {

// The algorithms that the user demands, and the origin of the demand ("IBCOLL_ALLTOALL", "the call"). No entries: none.
struct Forced {
  std::vector<ForcedEntry> entries;
  std::string origin;
};

// The shape of a call. `team`: the members that are the same for every call on the team.
Shape shape_of(Shape team, const Args& args);

struct Candidate {
  Choice choice;
  double cost_us;  // predicted
  double late_us;  // see Algorithm
};

// IBCOLL_ARRIVAL: what an algorithm is chosen for.
enum class Weighing {
  kTogether,  // the lowest cost_us
  kMixed,     // the lowest product of cost_us and late_us, of those whose cost_us is near the lowest
  kLate       // the lowest late_us
};

// The choices that may run, the best first: select() returns that. There is only one where it is
// forced or the team has one rank. NOT_APPLICABLE: the forced algorithm does not apply; the text says why and which
// would. `steady`: a model that is the same in every run. The best algorithm by it fixes the order of
// operands, so the bits are the same in every run. `model` chooses among the algorithms of that order.
Result<std::vector<Candidate>> candidates(ibcoll_collective_t collective, Shape shape, const CostModel& model,
                                          const Forced& forced, const CostModel* steady = nullptr,
                                          Weighing weighing = Weighing::kMixed);
Result<Choice> select(ibcoll_collective_t collective, Shape shape, const CostModel& model, const Forced& forced,
                      const CostModel* steady = nullptr, Weighing weighing = Weighing::kMixed);
// The predicted times of a choice.
double cost_us(const Choice& choice, Shape shape, const CostModel& model);
double late_us(const Choice& choice, Shape shape, const CostModel& model);
// The decision and its reason, as ibcoll_explain gives it. `all`: candidates() of the call.
Json explain(ibcoll_collective_t collective, Shape shape, const CostModel& model, const Forced& forced,
             const std::vector<Candidate>& all, Weighing weighing = Weighing::kMixed);

}  // namespace ibcoll
