// SPDX-License-Identifier: BSD-3-Clause
// Which algorithm runs: the forced one, else the one with the lowest predicted cost. The same on all ranks, because the
// shape and the model are.
#pragma once

#include <string>
#include <string_view>

#include "runtime/base/status.h"
#include "runtime/collectives/framework/algorithm.h"

namespace ibcoll {

// A name that the user demands, and where it comes from ("IBCOLL_ALLTOALL", "the call"); an empty name: none.
struct Forced {
  std::string_view name;
  std::string_view origin;
};

// NOT_APPLICABLE: the forced algorithm does not exist or does not apply; the text says why and which would.
Result<const Algorithm*> select(ibcoll_collective_t collective, const Shape& shape, const CostModel& model,
                                Forced forced);
// The decision and its reason, in one line; or the error of select().
Result<std::string> explain(ibcoll_collective_t collective, const Shape& shape, const CostModel& model, Forced forced);

}  // namespace ibcoll
