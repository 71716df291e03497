// SPDX-License-Identifier: BSD-3-Clause
// The algorithm of each call site that takes the least time, by trial in the simulator.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "tools/ibcoll_sim/replay/choices.h"
#include "tools/ibcoll_sim/replay/site_times.h"

namespace ibcoll::simulator {

struct BestOfSites {
  std::vector<std::string> names;  // by call site; "": what runs already is the best
  size_t left_out = 0;             // sites that were not tried, as the effort is limited
};

// Runs some calls of each site again, alone, with the arrivals of `moments`, by the algorithms of lowest predicted
// cost, beginning with the site that takes longest. `times`: of these moments.
Result<BestOfSites> best_of_sites(const KnownCalls& calls, const Choices& current, const std::vector<Moments>& moments,
                                  const JobTimes& times);

}  // namespace ibcoll::simulator
