// SPDX-License-Identifier: BSD-3-Clause
#include "tests/simulated/collective_case.h"

#include <algorithm>
#include <stdexcept>

#include "runtime/collectives/framework/arguments.h"
#include "runtime/collectives/framework/select.h"
#include "tools/oracle/elements.h"

namespace ibcoll {

CollectiveCase::CollectiveCase(CallParams params, uint64_t seed) : params_(std::move(params)) {
  params_.seed = seed;
  ranks_.reserve(static_cast<size_t>(params_.p));
  for (int rank = 0; rank < params_.p; ++rank) ranks_.emplace_back(params_, rank);
}

// As a caller would say it.
Result<Args> CollectiveCase::args(int rank) { return check_arguments(at(rank).args(), rank, params_.p); }

Shape CollectiveCase::shape() {
  Shape team;
  team.p = params_.p;
  Result<Args> args = this->args(0);
  if (!args.ok()) throw std::invalid_argument(args.status().text());
  return shape_of(team, *args);
}

}  // namespace ibcoll
