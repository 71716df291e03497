// SPDX-License-Identifier: BSD-3-Clause
// Changes of a recording: balanced computation, more ranks.
#pragma once

#include "runtime/base/status.h"
#include "tools/ibcoll_sim/options.h"
#include "tools/ibcoll_sim/replay/recording.h"

namespace ibcoll::simulator {

// All ranks of a team compute equally long before a call: the mean of theirs.
void compute_together(Recording& recording);

// The same program with `ranks` ranks, a multiple of those that it has. Rank r computes as rank r modulo the old number
// did, but in another order: what it computed before the calls of one site is shuffled among these (LogGOPSim's rule).
// A team of all ranks has all new ones; of any other team there is one for each multiple. INVALID_ARGUMENT: no multiple.
Result<Recording> with_more_ranks(const Recording& recording, int ranks, ReplayOptions::Scaled scaled, uint64_t seed);

// Some stretches of calls from all of the recording, with about so many parts of ranks in all. What is between them
// counts as computation.
Recording excerpt_of(const Recording& recording, uint64_t parts);

// A call alone, with these moments at which its ranks arrive.
Recording one_call(const Recording& recording, uint32_t call, const std::vector<Moments>& moments);

}  // namespace ibcoll::simulator
