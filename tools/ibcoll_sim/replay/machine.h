// SPDX-License-Identifier: BSD-3-Clause
// The machine of a replay: that of the recording, and the one that the command line asks for.
#pragma once

#include "runtime/base/status.h"
#include "runtime/comm/placement.h"
#include "tools/ibcoll_sim/model.h"
#include "tools/ibcoll_sim/options.h"
#include "tools/ibcoll_sim/replay/recording.h"

namespace ibcoll::simulator {

// The machine that the job ran on, as its selection predicted messages, copies and flags there: where ranks share cores,
// one that waits loses the time slices of the others. `defaults`: what was not recorded.
Options recorded_machine(const RecordedMachine& machine, int ranks, const Options& defaults);
// The machine `recorded`, changed by what the command line gave; with the number of ranks that is wanted.
// INVALID_ARGUMENT: the layout has not room for these.
Result<Options> wanted_machine(const Options& recorded, const Options& options);

// The facts that selection knows about every call on a team there.
Shape team_shape(const Options& machine, const Placement& placement);
CostModel team_model(const Options& machine, const Placement& placement);

}  // namespace ibcoll::simulator
