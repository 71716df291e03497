// SPDX-License-Identifier: BSD-3-Clause
// The facts that selection knows about a team before a call.
#pragma once

#include "runtime/collectives/framework/algorithm.h"
#include "runtime/context/join.h"
#include "runtime/engine/engine.h"

namespace ibcoll {

struct TeamProfile {
  Shape shape;  // of every call on the team
  CostModel model;
  CostModel steady_model;  // from nothing that was timed: the same in every run

  // The models follow from the shape, from what the job has timed, and from how much may go to ranks that are late.
  void fill_models(const JoinedJob& job, const EngineLimits& limits);
};

}  // namespace ibcoll
