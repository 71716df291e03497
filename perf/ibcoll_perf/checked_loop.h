// SPDX-License-Identifier: BSD-3-Clause
// The loop of --check: every call gets fresh data and a receive buffer without any, and is verified to the last byte.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "perf/ibcoll_perf/bench_case.h"

namespace ibcoll::perf {

// Leaves this rank's times in `calls` (filling and verifying not counted; waiting for a rank that still verifies is)
// and the number of wrong bytes of all ranks in `errors`: nothing where it is not known. The first wrong bytes go to
// stderr. False: a call failed.
//
// Rounds of one, two and three calls back to back alternate, so that a call that meets the tail of the one before is
// verified as well. A barrier has no bytes; its errors are the ranks that left one before all had entered, where all
// clocks are one.
bool run_checked_loop(BenchCase& bench, const LoopPlan& plan, std::vector<double>& calls,
                      std::optional<uint64_t>& errors);

}  // namespace ibcoll::perf
