// SPDX-License-Identifier: BSD-3-Clause
// Where the time in collectives goes, by call site. All times are in seconds of a rank, the mean over the ranks of the
// job.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tools/ibcoll_sim/replay/choices.h"
#include "tools/ibcoll_sim/replay/recording.h"

namespace ibcoll::simulator {

struct SiteTimes {
  uint64_t calls = 0;
  double mean_bytes = 0;  // of a block
  double late = 0;        // the rank waits for those of the team that have not come
  double moving = 0;      // in the call, or in the wait for it, after the last arrival
  double bound = 0;       // no algorithm has less `moving` than that
  double all() const { return late + moving; }
};

struct JobTimes {
  double total = 0;  // from the beginning of the program to the end of its last call
  std::vector<SiteTimes> sites;
  SiteTimes sum() const;
};

// Returns the mean block of a call, in bytes.
double mean_block(const Recording& recording, const CallKind& kind);

// `machine`: for the bound; nullptr: it stays 0.
JobTimes job_times(const Recording& recording, const std::vector<Moments>& moments, const KnownCalls* machine);

}  // namespace ibcoll::simulator
