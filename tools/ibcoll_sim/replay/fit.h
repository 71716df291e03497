// SPDX-License-Identifier: BSD-3-Clause
// The recorded machine as the recording shows it: selection's times of messages, flags and bytes there, each multiplied
// by a factor with which the replay agrees best with what was recorded.
#pragma once

#include <vector>

#include "runtime/base/status.h"
#include "tools/ibcoll_sim/options.h"
#include "tools/ibcoll_sim/replay/recording.h"

namespace ibcoll::simulator {

struct FittedMachine {
  Options machine;
  double startup = 1, bytes = 1;  // the factors
};

// From stretches of the recording that take some seconds.
Result<FittedMachine> fitted_machine(const Recording& recording, const Options& defaults);

// How much more time in collectives was played than recorded: 0.1 is 10 %.
double excess(const Recording& recording, const std::vector<Moments>& played);
// The difference of the times in collectives, summed over calls of one kind and site, as a share of all recorded time.
double disagreement(const Recording& recording, const std::vector<Moments>& played);

}  // namespace ibcoll::simulator
